"""How an upsert finds its object, and what it answers when it does not."""

from __future__ import annotations

from typing import Any

from tests.contract.cases.case import Case, Conversation, case, register
from tests.contract.cases.starts import a_device
from tests.contract.cases.talk import Talk, peer, values

_TAG = "hfid display_label name { value } description { value is_default }"
_SITE = "name { value } description { value } status { value } asset { value }"


@case("upsert")
def new(t: Talk) -> None:
    """No id, key unknown: creates."""
    made = t.write("ProbeTagUpsert", values(name=t.name()), below="ok object { id hfid name { value is_default } }")
    t.read("ProbeTag", made.id, _TAG)


@case("upsert")
def same_again(t: Talk) -> None:
    """The same again: the same id, nothing tells that nothing changed, no time moves."""
    first = t.write("ProbeTagUpsert", values(name=t.name(), description="d"))
    before = t.read("ProbeTag", first.id, "name { value updated_at } description { value updated_at }").node
    again = t.write(
        "ProbeTagUpsert", values(name=t.name(), description="d"), below="ok object { id name { value updated_at } }"
    )
    after = t.read("ProbeTag", again.id, "name { value updated_at } description { value updated_at }").node
    t.note("a time moved", before != after)


@case("upsert")
def changed_attribute(t: Talk) -> None:
    """A changed attribute: the same id; only a read shows the new time."""
    first = t.write("ProbeTagUpsert", values(name=t.name(), description="d"))
    before = t.read("ProbeTag", first.id, "name { updated_at } description { value updated_at }").node
    below = "ok object { id description { value updated_at } }"
    t.write("ProbeTagUpsert", values(name=t.name(), description="e"), below=below)
    after = t.read("ProbeTag", first.id, "name { updated_at } description { value updated_at }").node
    t.note("the name's time moved", before["name"] != after["name"])
    t.note("the description's time moved", before["description"] != after["description"])


@case("upsert")
def id_never_there(t: Talk) -> None:
    """An id that never was: NODE_NOT_FOUND, and nothing is created."""
    t.write("ProbeTagUpsert", {"id": t.new_id("gone"), **values(name=t.name())})
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("upsert")
def id_missing_but_key_known(t: Talk) -> None:
    """An unknown id beside a known key: it never falls back to the key."""
    t.write("ProbeTagUpsert", values(name=t.name(), description="d"))
    t.write("ProbeTagUpsert", {"id": t.new_id("gone"), **values(name=t.name(), description="e")})
    t.find("ProbeTag", {"name__value": t.name()}, "description { value }")


@case("upsert")
def id_of_a_deleted_object(t: Talk) -> None:
    """The id of a deleted object is as unknown as any."""
    tag = t.write("ProbeTagUpsert", values(name=t.name())).id
    t.write("ProbeTagDelete", {"id": tag})
    t.write("ProbeTagUpsert", {"id": tag, **values(name=t.name())})


@case("upsert")
def id_of_a_deleted_object_whose_key_is_there_again(t: Talk) -> None:
    """Deleted, and made again by someone else under another id."""
    tag = t.write("ProbeTagUpsert", values(name=t.name())).id
    t.write("ProbeTagDelete", {"id": tag})
    t.write("ProbeTagUpsert", values(name=t.name()))
    t.write("ProbeTagUpsert", {"id": tag, **values(name=t.name(), description="x")})
    t.find("ProbeTag", {"name__value": t.name()}, "description { value }")


@case("upsert")
def id_of_another_kind(t: Talk) -> None:
    """The id of another kind: same code and identifier, another message."""
    tag = t.write("ProbeTagUpsert", values(name=t.name())).id
    t.write("ProbeSiteUpsert", {"id": tag, **values(name=t.name())})


def _sent_beside_a_name(**sent: Any) -> Conversation:
    def hold(t: Talk) -> None:
        t.write("ProbeTagUpsert", {**sent, **values(name=t.name())})

    return hold


def _tag_beside(field: str, given: Any) -> Conversation:
    """One upsert of a tag that names itself by ``field`` too."""

    def hold(t: Talk) -> None:
        t.write("ProbeTagUpsert", {field: given, **values(name=t.name())})

    return hold


for _label, _text in (("empty", ""), ("no-uuid", "no-uuid"), ("key-as-id", "known-key")):
    _shows = "A text that is no id is answered like a missing one."
    register(Case("upsert", f"id-{_label}", _shows, _sent_beside_a_name(id=_text)))


@case("upsert")
def id_in_upper_case(t: Talk) -> None:
    """An id in upper case is another id."""
    tag = t.write("ProbeTagUpsert", values(name=t.name())).id
    t.write("ProbeTagUpsert", {"id": t.known(tag.upper(), "in upper case")})


@case("upsert")
def id_null(t: Talk) -> None:
    """A null id: a crash in text, and nothing is written."""
    t.write("ProbeTagUpsert", {"id": None, **values(name=t.name())})
    t.find("ProbeTag", {"name__value": t.name()}, "id")


@case("upsert")
def id_and_part_of_the_fields(t: Talk) -> None:
    """By id a partial payload is enough and leaves the rest."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), description="d", asset=t.name("1"))).id
    t.write("ProbeSiteUpsert", {"id": site, **values(status="drained")})
    t.read("ProbeSite", site, _SITE)


@case("upsert")
def id_and_another_objects_key(t: Talk) -> None:
    """By id, with a key that another object holds: refused, nothing changed."""
    t.write("ProbeTagUpsert", values(name=t.name("a")))
    second = t.write("ProbeTagUpsert", values(name=t.name("b"))).id
    t.write("ProbeTagUpsert", {"id": second, **values(name=t.name("a"))})
    t.read("ProbeTag", second, "name { value }")


@case("upsert")
def id_and_a_new_key(t: Talk) -> None:
    """By id, a rename: the object keeps its id, its human-friendly id moves."""
    tag = t.write("ProbeTagUpsert", values(name=t.name("a"))).id
    t.write("ProbeTagUpsert", {"id": tag, **values(name=t.name("b"))}, below="ok object { id hfid }")
    t.read("ProbeTag", tag, "hfid name { value }")
    t.find("ProbeTag", {"hfid": [t.name("a")]}, "id")
    t.find("ProbeTag", {"hfid": [t.name("b")]}, "id")


@case("upsert")
def mandatory_field_missing_though_the_object_exists(t: Talk) -> None:
    """A create is tried first, so it must carry every mandatory field even where the object exists."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name())).id
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site)})
    t.write("ProbeDeviceUpsert", values(name=t.name()))


@case("upsert")
def several_mandatory_fields_missing(t: Talk) -> None:
    """Several missing fields."""
    t.write("ProbeStrictUpsert", values(name=t.name()))


@case("upsert")
def key_part_missing(t: Talk) -> None:
    """A mandatory part of the key is missing: refused."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name())).id
    t.write("ProbeVlanUpsert", {"site": peer(site)})
    t.write("ProbeVlanUpsert", values(vid=7))


@case("upsert")
def key_across_a_relationship(t: Talk) -> None:
    """A key across a relationship, with a number in it, converges."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name())).id
    made = t.write("ProbeVlanUpsert", {**values(vid=7), "site": peer(site)}, below="ok object { id hfid }").id
    t.write("ProbeVlanUpsert", {**values(vid=7, description="d"), "site": peer(site)})
    t.read("ProbeVlan", made, "hfid vid { value } description { value }")


@case("upsert")
def without_any_key(t: Talk) -> None:
    """A kind without any key: another object each time."""
    t.write("ProbeLogUpsert", values(entry=t.name()))
    t.write("ProbeLogUpsert", values(entry=t.name()))
    t.find("ProbeLog", {"entry__value": t.name()}, "id")


@case("upsert")
def key_of_a_constraint_alone(t: Talk) -> None:
    """A kind keyed by a constraint alone refuses the second upsert."""
    device = a_device(t)
    t.write("ProbePortUpsert", {**values(name="p1"), "device": peer(device)})
    t.write("ProbePortUpsert", {**values(name="p1", description="x"), "device": peer(device)})


@case("upsert")
def key_of_one_and_a_unique_value_of_another(t: Talk) -> None:
    """Key of object A, unique value of object B: refused, no update."""
    t.write("ProbeSiteUpsert", values(name=t.name("a"), asset=t.name("1")))
    t.write("ProbeSiteUpsert", values(name=t.name("b"), asset=t.name("2")))
    t.write("ProbeSiteUpsert", values(name=t.name("a"), asset=t.name("2"), description="x"))
    t.find("ProbeSite", {"name__value": t.name("a")}, _SITE)


@case("upsert")
def optional_unique_null_twice(t: Talk) -> None:
    """A second null in an optional unique attribute collides with the first."""
    t.write("ProbeSiteUpsert", values(name=t.name("a")))
    t.write("ProbeSiteUpsert", values(name=t.name("b")))


@case("upsert")
def hfid_of_the_right_length_unknown(t: Talk) -> None:
    """An hfid without a match is dropped and a create is tried."""
    made = t.write("ProbeTagUpsert", {"hfid": [t.name("nope")], **values(name=t.name("other"))})
    t.read("ProbeTag", made.id, "name { value }")


for _label, _hfid in (("none", []), ("two", ["a", "b"]), ("null", None)):
    _shows = "An hfid with the wrong number of components."
    register(Case("upsert", f"hfid-of-{_label}", _shows, _sent_beside_a_name(hfid=_hfid)))


@case("upsert")
def hfid_for_a_kind_without_one(t: Talk) -> None:
    """An hfid for a kind that has none."""
    t.write("ProbeLogUpsert", {"hfid": ["a"], **values(entry=t.name())})


@case("upsert")
def hfid_known(t: Talk) -> None:
    """By hfid: an update."""
    tag = t.write("ProbeTagUpsert", values(name=t.name())).id
    t.write("ProbeTagUpsert", {"hfid": [t.name()], **values(description="x")})
    t.read("ProbeTag", tag, "description { value }")


@case("upsert")
def hfid_beside_an_id(t: Talk) -> None:
    """An hfid beside an id is ignored."""
    tag = t.write("ProbeTagUpsert", values(name=t.name())).id
    t.write("ProbeTagUpsert", {"id": tag, "hfid": ["a", "b", "c"], **values(description="x")})


@case("upsert")
def hfid_and_name_disagree(t: Talk) -> None:
    """hfid of one object, name of another, both exist: refused."""
    t.write("ProbeTagUpsert", values(name=t.name("a")))
    t.write("ProbeTagUpsert", values(name=t.name("b")))
    t.write("ProbeTagUpsert", {"hfid": [t.name("a")], **values(name=t.name("b"))})


@case("upsert")
def answer_of_an_update_shows_only_the_peers_that_were_sent(t: Talk) -> None:
    """The object in an update's answer is the one in memory: no times, no peers that were not sent."""
    device = a_device(t)
    below = "ok object { id name { value updated_at } site { node { display_label } } description { value } }"
    t.write("ProbeDeviceUpsert", {"id": device, **values(description="x")}, below=below)


@case("upsert")
def without_id_answers_with_peers(t: Talk) -> None:
    """The object in a create's answer has its peers."""
    site = t.write("ProbeSiteUpsert", values(name=t.name(), asset=t.name())).id
    below = "ok object { id hfid display_label site { node { id display_label } } tags { count } }"
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site)}, below=below)


@case("default-filter")
def finds(t: Talk) -> None:
    """A kind without a human-friendly id is found by its default filter; Create does not look."""
    t.write("ProbeFilteredUpsert", values(code=t.name(), description="d"))
    t.write("ProbeFilteredUpsert", values(code=t.name(), description="e"))
    t.find("ProbeFiltered", {"code__value": t.name()}, "code { value } description { value }")
    t.write("ProbeFilteredCreate", values(code=t.name(), description="f"))
    t.find("ProbeFiltered", {"code__value": t.name()}, "code { value } description { value }")


@case("default-filter")
def finds_two(t: Talk) -> None:
    """[haz] Two objects that fit."""
    for _ in range(2):
        t.write("ProbeFilteredCreate", values(code=t.name(), description="d"))
    t.write("ProbeFilteredUpsert", values(code=t.name(), description="e"))
    t.find("ProbeFiltered", {"code__value": t.name()}, "description { value }")


@case("default-filter")
def without_its_value(t: Talk) -> None:
    """[haz] Without the value, or with null in its place: another object each time."""
    for given in ({}, {}, values(code=None), values(code=None), {"code": None}, values(code=""), values(code="")):
        t.write("ProbeFilteredUpsert", {**given, **values(description=t.name())})
    t.find("ProbeFiltered", {"description__value": t.name()}, "code { value }")


@case("default-filter")
def an_id_as_its_value(t: Talk) -> None:
    """[haz] The filter takes an id of any object for that object."""
    made = t.write("ProbeFilteredCreate", values(code=t.name(), description="d")).id
    t.write("ProbeFilteredUpsert", values(code=made, description="e"))
    t.read("ProbeFiltered", made, "code { value } description { value }")


@case("optional-key")
def part_left_out(t: Talk) -> None:
    """[haz] An optional part of the key is left out: whether a repeat finds the object."""
    for description in ("d", "e"):
        t.write("ProbeLabelledUpsert", values(name=t.name(), description=description), below="ok object { id hfid }")
    t.find("ProbeLabelled", {"name__value": t.name()}, "hfid suffix { value } description { value }")
    t.write("ProbeLabelledCreate", values(name=t.name()))


@case("optional-key")
def part_null(t: Talk) -> None:
    """The same with null in its place, and with an empty text, which is another key."""
    for given in (values(suffix=None), {}, values(suffix=""), values(suffix="")):
        t.write("ProbeLabelledUpsert", {**values(name=t.name()), **given}, below="ok object { id hfid }")
    t.find("ProbeLabelled", {"name__value": t.name()}, "hfid suffix { value }")


@case("optional-key")
def part_given(t: Talk) -> None:
    """With all parts it converges, beside an object without that part."""
    t.write("ProbeLabelledUpsert", values(name=t.name()))
    for description in ("d", "e"):
        t.write("ProbeLabelledUpsert", values(name=t.name(), suffix="s", description=description))
    t.find("ProbeLabelled", {"name__value": t.name()}, "hfid description { value }")


@case("optional-key")
def part_cleared(t: Talk) -> None:
    """Cleared by id, where another object is without that part already."""
    t.write("ProbeLabelledUpsert", values(name=t.name()))
    made = t.write("ProbeLabelledUpsert", values(name=t.name(), suffix="s")).id
    t.write("ProbeLabelledUpsert", {"id": made, **values(suffix=None)})
    t.read("ProbeLabelled", made, "hfid suffix { value }")
