"""``<Kind>Create``, ids that the client chooses, ``<Kind>Update`` and ``<Kind>Delete``."""

from __future__ import annotations

from tests.contract.cases.case import Case, case, register
from tests.contract.cases.starts import a_device, a_port, a_site, a_tag, a_vlan
from tests.contract.cases.talk import Talk, peer, peers, values


@case("create")
def key_exists(t: Talk) -> None:
    """Create never converges: the constraint is named, not the holder."""
    t.write("ProbeTagCreate", values(name=t.name()))
    t.write("ProbeTagCreate", values(name=t.name(), description="x"))


@case("create")
def key_across_a_relationship_exists(t: Talk) -> None:
    """The label of a constraint across a relationship."""
    site = a_site(t)
    t.write("ProbeVlanCreate", {**values(vid=1), "site": peer(site)})
    t.write("ProbeVlanCreate", {**values(vid=1), "site": peer(site)})


@case("create")
def answer(t: Talk) -> None:
    """What a create answers with."""
    below = "ok object { id hfid display_label name { value is_default updated_at } description { value is_default } }"
    t.write("ProbeTagCreate", values(name=t.name()), below=below)


@case("own-id")
def taken(t: Talk) -> None:
    """An id of ours is used."""
    t.write("ProbeTagCreate", {"id": t.new_id(), **values(name=t.name())})


@case("own-id")
def repeated(t: Talk) -> None:
    """The same create again: in use, said before the uniqueness that is violated too."""
    own = t.new_id()
    t.write("ProbeTagCreate", {"id": own, **values(name=t.name())})
    t.write("ProbeTagCreate", {"id": own, **values(name=t.name())})
    t.read("ProbeTag", own, "name { value }")


@case("own-id")
def repeated_for_a_constraint_alone(t: Talk) -> None:
    """A kind keyed by a constraint alone: in use, and the object is there."""
    own, device = t.new_id(), a_device(t)
    data = {"id": own, **values(name="p1"), "device": peer(device)}
    t.write("ProbePortCreate", data)
    t.write("ProbePortCreate", data)
    t.read("ProbePort", own, "name { value } device { node { display_label } }")


@case("own-id")
def repeated_without_any_key(t: Talk) -> None:
    """A kind without any key: in use, one object."""
    own = t.new_id()
    t.write("ProbeLogCreate", {"id": own, **values(entry=t.name())})
    t.write("ProbeLogCreate", {"id": own, **values(entry=t.name())})
    t.find("ProbeLog", {"entry__value": t.name()}, "id")


@case("own-id")
def of_a_deleted_object(t: Talk) -> None:
    """A deleted object's id stays in use: 'in use' does not mean that the create arrived."""
    own, device = t.new_id(), a_device(t)
    data = {"id": own, **values(name="p1"), "device": peer(device)}
    t.write("ProbePortCreate", data)
    t.write("ProbePortDelete", {"id": own})
    t.write("ProbePortCreate", data)
    t.read("ProbePort", own, "id")


@case("own-id")
def of_another_kind(t: Talk) -> None:
    """An id that an object of another kind has."""
    tag = a_tag(t)
    t.write("ProbeLogCreate", {"id": tag, **values(entry="x")})
    t.read("ProbeLog", tag, "id")


@case("own-id")
def of_another_branch(t: Talk) -> None:
    """An id that is in use on another branch only."""
    own, other = t.new_id(), t.new_branch("other")
    t.write("ProbeLogCreate", {"id": own, **values(entry="x")}, branch=other)
    t.write("ProbeLogCreate", {"id": own, **values(entry="x")})
    t.read("ProbeLog", own, "id")


@case("own-id")
def constraint_held_by_someone_else(t: Talk) -> None:
    """A new id, but the constraint is held: the uniqueness error."""
    port, device = a_port(t)
    own = t.new_id()
    t.write("ProbePortCreate", {"id": own, **values(name="p1"), "device": peer(device)})
    t.read("ProbePort", own, "id")
    t.read("ProbePort", port, "name { value }")


for _label, _change in (
    ("in-upper-case", str.upper),
    ("without-dashes", lambda text: text.replace("-", "")),
    ("in-braces", lambda text: f"{{{text}}}"),
    ("urn", lambda text: f"urn:uuid:{text}"),
):

    def _other_spelling(t: Talk, change=_change) -> None:  # type: ignore[no-untyped-def]
        own = t.new_id()
        other = t.known(change(own), "other spelling")
        t.write("ProbeLogCreate", {"id": own, **values(entry="x")})
        t.write("ProbeLogCreate", {"id": other, **values(entry="y")})
        t.read("ProbeLog", own, "id entry { value }")
        t.read("ProbeLog", other, "id entry { value }")

    register(
        Case("own-id", f"spelt-{_label}", "[haz] Another spelling of an id is another object's id.", _other_spelling)
    )


@case("own-id")
def no_uuid(t: Talk) -> None:
    """A text that is no UUID."""
    t.write("ProbeLogCreate", {"id": "no-uuid", **values(entry="x")})


@case("own-id")
def null(t: Talk) -> None:
    """A null id: the server makes one."""
    t.write("ProbeLogCreate", {"id": None, **values(entry="x")})


@case("own-id")
def empty(t: Talk) -> None:
    """An empty id: the server makes one."""
    t.write("ProbeLogCreate", {"id": "", **values(entry="x")})


@case("own-id")
def unknown_to_an_upsert(t: Talk) -> None:
    """An upsert never creates under an id."""
    own = t.new_id()
    t.write("ProbeLogUpsert", {"id": own, **values(entry="x")})
    t.read("ProbeLog", own, "id")


@case("own-id")
def together_with_missing_fields(t: Talk) -> None:
    """In use is said before missing fields are."""
    own, device = t.new_id(), a_device(t)
    t.write("ProbePortCreate", {"id": own, **values(name="p1"), "device": peer(device)})
    t.write("ProbePortCreate", {"id": own})


@case("update")
def by_id(t: Talk) -> None:
    """Update by id."""
    tag = a_tag(t)
    t.write("ProbeTagUpdate", {"id": tag, **values(description="x")})
    t.read("ProbeTag", tag, "description { value }")


@case("update")
def by_hfid(t: Talk) -> None:
    """Update by human-friendly id."""
    tag = a_tag(t)
    t.write("ProbeTagUpdate", {"hfid": [t.name("tag")], **values(description="x")})
    t.read("ProbeTag", tag, "description { value }")


@case("update")
def of_nothing(t: Talk) -> None:
    """Update without id and hfid."""
    t.write("ProbeTagUpdate", values(name=t.name()))


@case("update")
def id_missing(t: Talk) -> None:
    """Update by an unknown id."""
    t.write("ProbeTagUpdate", {"id": t.new_id("gone"), **values(description="x")})


@case("update")
def hfid_missing(t: Talk) -> None:
    """Update by an unknown human-friendly id."""
    t.write("ProbeTagUpdate", {"hfid": [t.name("gone")], **values(description="x")})


@case("update")
def id_of_another_kind(t: Talk) -> None:
    """Update by the id of another kind."""
    t.write("ProbeSiteUpdate", {"id": a_tag(t), **values(description="x")})


@case("delete")
def id_never_there(t: Talk) -> None:
    """Delete an unknown id."""
    t.write("ProbeTagDelete", {"id": t.new_id("gone")})


@case("delete")
def twice(t: Talk) -> None:
    """A repeated delete is recognisable."""
    tag = a_tag(t)
    t.write("ProbeTagDelete", {"id": tag})
    t.write("ProbeTagDelete", {"id": tag})


@case("delete")
def hfid(t: Talk) -> None:
    """Delete by human-friendly id."""
    tag = a_tag(t)
    t.write("ProbeTagDelete", {"hfid": [t.name("tag")]})
    t.read("ProbeTag", tag, "id")


@case("delete")
def neither_id_nor_hfid(t: Talk) -> None:
    """Delete of nothing."""
    t.write("ProbeTagDelete", {})


@case("delete")
def required_peer(t: Talk) -> None:
    """An object that another one needs cannot be deleted."""
    site = a_site(t)
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site)})
    t.write("ProbeSiteDelete", {"id": site})
    t.read("ProbeSite", site, "name { value }")


@case("delete")
def required_peer_of_two(t: Talk) -> None:
    """One error for each dependant."""
    site = a_site(t)
    t.write("ProbeDeviceUpsert", {**values(name=t.name("1")), "site": peer(site)})
    t.write("ProbeVlanUpsert", {**values(vid=1), "site": peer(site)})
    t.write("ProbeSiteDelete", {"id": site})


@case("delete")
def parent(t: Talk) -> None:
    """[haz] The components of a deleted parent go too, without a word."""
    port, device = a_port(t)
    t.write("ProbeDeviceDelete", {"id": device})
    t.read("ProbePort", port, "id")


@case("delete")
def optional_peer(t: Talk) -> None:
    """An optional peer vanishes from the relationship."""
    device, backup = a_device(t), a_site(t, "backup")
    t.write("ProbeDeviceUpsert", {"id": device, "backup": peer(backup)})
    t.write("ProbeSiteDelete", {"id": backup})
    t.read("ProbeDevice", device, "backup { node { id } }")


@case("delete")
def one_of_many_peers(t: Talk) -> None:
    """A deleted tag leaves the sets that hold it."""
    device, one, other = a_device(t), a_tag(t, "one"), a_tag(t, "other")
    t.write("ProbeDeviceUpsert", {"id": device, "tags": peers(one, other)})
    t.write("ProbeTagDelete", {"id": one})
    t.read("ProbeDevice", device, "tags { count edges { node { display_label } } }")


@case("delete")
def id_of_an_object_of_another_kind(t: Talk) -> None:
    """Delete by the id of another kind."""
    t.write("ProbeSiteDelete", {"id": a_tag(t)})


@case("delete")
def number_in_the_key(t: Talk) -> None:
    """Delete by a human-friendly id with a number in it."""
    vlan = a_vlan(t)
    t.write("ProbeVlanDelete", {"hfid": [t.name("site"), "7"]})
    t.read("ProbeVlan", vlan, "id")
