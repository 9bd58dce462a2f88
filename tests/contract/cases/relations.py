"""Relationships: one and many, set, replaced, cleared, by id and by human-friendly id, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.case import Case, case, register
from tests.contract.cases.starts import a_device, a_port, a_site, a_tag
from tests.contract.cases.talk import Talk, peer, peers, values

_ONE = "site { node { display_label } } backup { node { display_label } } place { node { display_label } }"
_TAGS = "tags { count edges { node { display_label } } }"


@case("one")
def set_and_replaced(t: Talk) -> None:
    """Set, replaced, and left alone where it is not named."""
    device, first, second = a_device(t), a_site(t, "first"), a_site(t, "second")
    for site in (first, second):
        t.write("ProbeDeviceUpsert", {"id": device, "backup": peer(site)})
        t.read("ProbeDevice", device, _ONE)
    t.write("ProbeDeviceUpsert", {"id": device, **values(description="x")})
    t.read("ProbeDevice", device, _ONE)
    t.read("ProbeSite", first, "devices { count }")


@case("one")
def no_op_moves_no_time(t: Talk) -> None:
    """The same peer again moves no time."""
    device, site = a_device(t), a_site(t, "first")
    query = "backup { properties { updated_at } } name { updated_at }"
    t.write("ProbeDeviceUpsert", {"id": device, "backup": peer(site)})
    before = t.read("ProbeDevice", device, query).node
    t.write("ProbeDeviceUpsert", {"id": device, "backup": peer(site)})
    t.note("a time moved", before != t.read("ProbeDevice", device, query).node)


@case("one")
def cleared(t: Talk) -> None:
    """Null clears an optional one."""
    device, site = a_device(t), a_site(t, "first")
    t.write("ProbeDeviceUpsert", {"id": device, "backup": peer(site)})
    t.write("ProbeDeviceUpsert", {"id": device, "backup": None})
    t.read("ProbeDevice", device, _ONE)


@case("one")
def mandatory_cleared(t: Talk) -> None:
    """Null for a mandatory one on an update: too few."""
    device = a_device(t)
    t.write("ProbeDeviceUpsert", {"id": device, "site": None})
    t.read("ProbeDevice", device, _ONE)


@case("one")
def mandatory_null_on_a_create(t: Talk) -> None:
    """[haz] Null for a mandatory one on Create is accepted: an object without its mandatory peer."""
    made = t.write("ProbeDeviceCreate", {**values(name=t.name()), "site": None})
    t.read("ProbeDevice", made.id, _ONE)


@case("one")
def mandatory_null_on_an_upsert_that_creates(t: Talk) -> None:
    """[haz] The same through an upsert."""
    made = t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": None})
    t.read("ProbeDevice", made.id, _ONE)


@case("one")
def mandatory_null_in_a_key(t: Talk) -> None:
    """Null for a mandatory one that is part of the key."""
    t.write("ProbeVlanUpsert", {**values(vid=7), "site": None})
    t.write("ProbeVlanCreate", {**values(vid=8), "site": None})


@case("one")
def mandatory_null_in_a_constraint(t: Talk) -> None:
    """Null for a mandatory parent that is part of a constraint."""
    t.write("ProbePortUpsert", {**values(name=t.name()), "device": None})


@case("one")
def mandatory_left_out(t: Talk) -> None:
    """A mandatory one left out of a create."""
    t.write("ProbeDeviceUpsert", values(name=t.name()))


@case("one")
def its_own_peer(t: Talk) -> None:
    """An object may be its own peer."""
    site = a_site(t)
    t.write("ProbeSiteUpsert", {"id": site, "parent": peer(site)})
    t.read("ProbeSite", site, "parent { node { display_label } } children { count edges { node { display_label } } }")


@case("one")
def seen_from_the_other_side(t: Talk) -> None:
    """Both sides of one edge."""
    upper, lower = a_site(t, "upper"), a_site(t, "lower")
    t.write("ProbeSiteUpsert", {"id": lower, "parent": peer(upper)})
    t.read("ProbeSite", upper, "children { count edges { node { display_label } } } parent { node { id } }")
    t.write("ProbeSiteUpsert", {"id": upper, "children": []})
    t.read("ProbeSite", lower, "parent { node { id } }")


_ODD_PEERS: tuple[tuple[str, str, Callable[[Talk], Any]], ...] = (
    ("missing-id", "A peer id that never was: the identifier is the peer's.", lambda t: peer(t.new_id("gone"))),
    ("name-as-id", "A name given as an id.", lambda t: peer("zzz")),
    ("empty-id", "An empty id.", lambda t: peer("")),
    ("id-null", "A null id.", lambda t: {"id": None}),
    ("nothing", "A peer that names nothing.", lambda t: {}),
    ("missing-hfid", "A peer by an unknown human-friendly id.", lambda t: {"hfid": [t.name("gone")]}),
    ("short-hfid", "A human-friendly id of the wrong length.", lambda t: {"hfid": ["a", "b"]}),
    ("empty-hfid", "An empty human-friendly id.", lambda t: {"hfid": []}),
    ("wrong-kind", "A peer of a kind that the relationship does not take.", lambda t: peer(a_tag(t))),
    ("by-hfid", "A peer by its human-friendly id.", lambda t: {"hfid": [t.name("there")]}),
    ("by-hfid-as-text", "A bare text in place of a list.", lambda t: {"hfid": t.name("there")}),
    ("id-beside-hfid", "[haz] The id wins silently.", lambda t: {"id": a_site(t, "other"), "hfid": [t.name("there")]}),
    ("kind-beside-id", "A kind beside an id is not checked.", lambda t: {"id": a_site(t, "o"), "kind": "ProbeTag"}),
    (
        "kind-beside-hfid",
        "A kind beside an hfid.",
        lambda t: {"hfid": [t.name("there")], "kind": "ProbeTag"},
    ),
    ("upper-case-id", "An id in upper case.", lambda t: peer(t.known(a_site(t, "other").upper(), "in upper case"))),
    ("unknown-owner", "An unknown owner id is ignored.", lambda t: {"id": a_site(t, "o"), "_relation__owner": "zzz"}),
    ("protected", "A protected relationship.", lambda t: {"id": a_site(t, "o"), "_relation__is_protected": True}),
    ("from-pool", "A pool that is not there.", lambda t: {"from_pool": {"id": t.new_id("pool")}}),
    ("a-list", "A list where one is wanted.", lambda t: [peer(a_site(t, "other"))]),
    ("a-text", "A text where an object is wanted.", lambda t: a_site(t, "other")),
)


def _odd_one(made: Callable[[Talk], Any]) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        device = a_device(t)
        a_site(t, "there")
        t.write("ProbeDeviceUpsert", {"id": device, "backup": made(t)})
        t.read("ProbeDevice", device, _ONE)

    return hold


for _label, _shows, _made in _ODD_PEERS:
    register(Case("one", f"peer-{_label}", _shows, _odd_one(_made)))


@case("one")
def peer_deleted(t: Talk) -> None:
    """The id of a deleted peer."""
    device, site = a_device(t), a_site(t, "gone")
    t.write("ProbeSiteDelete", {"id": site})
    t.write("ProbeDeviceUpsert", {"id": device, "backup": peer(site)})


@case("one")
def own_id_and_a_peer_missing(t: Talk) -> None:
    """Own id and a peer are missing: the own id is named, alone."""
    t.write("ProbeDeviceUpsert", {"id": t.new_id("gone"), "backup": peer(t.new_id("gone peer"))})


@case("one")
def peer_missing_on_a_create(t: Talk) -> None:
    """A create with a missing peer writes nothing."""
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(t.new_id("gone"))})
    t.find("ProbeDevice", {"name__value": t.name()}, "id")


@case("one")
def two_peers_missing(t: Talk) -> None:
    """Two missing peers: one error."""
    data = {"site": peer(t.new_id("gone site")), "backup": peer(t.new_id("gone backup"))}
    t.write("ProbeDeviceUpsert", {**values(name=t.name()), **data})


@case("one")
def wrong_kind_and_a_bad_value(t: Talk) -> None:
    """A wrong peer and a mandatory null: what is named."""
    tag = a_tag(t)
    t.write("ProbeDeviceUpsert", {**values(name=None), "site": peer(tag), "backup": peer(tag)})


@case("one")
def peer_is_a_generic(t: Talk) -> None:
    """A relationship to a generic: by id, and by human-friendly id with and without a kind."""
    device, site = a_device(t), a_site(t, "place")
    rack = t.write("ProbeRackUpsert", {**values(name=t.name("rack")), "site": peer(site)}).id
    key = [t.name("place"), t.name("rack")]
    for given in (peer(rack), {"hfid": key}, {"hfid": key, "kind": "ProbeRack"}, {"hfid": key, "kind": "ProbeCabinet"}):
        t.write("ProbeDeviceUpsert", {"id": device, "place": given})
        t.read("ProbeDevice", device, "place { node { __typename id hfid } }")
        t.write("ProbeDeviceUpsert", {"id": device, "place": None})


@case("many")
def replaced(t: Talk) -> None:
    """A list is the whole set: what it leaves out goes; [] empties; left out keeps."""
    device, (a, b, c) = a_device(t), (a_tag(t, label) for label in "abc")
    for given in (peers(a, b), peers(a, c), peers(c), [], peers(b)):
        t.write("ProbeDeviceUpsert", {"id": device, "tags": given})
        t.read("ProbeDevice", device, _TAGS)
    t.write("ProbeDeviceUpsert", {"id": device, **values(description="x")})
    t.read("ProbeDevice", device, _TAGS)


@case("many")
def same_set_moves_no_time(t: Talk) -> None:
    """The same set again, in another order, moves no time."""
    device, (a, b) = a_device(t), (a_tag(t, label) for label in "ab")
    query = "tags { edges { properties { updated_at } node { display_label } } }"
    t.write("ProbeDeviceUpsert", {"id": device, "tags": peers(a, b)})
    before = sorted(map(str, t.read("ProbeDevice", device, query).node["tags"]["edges"]))
    t.write("ProbeDeviceUpsert", {"id": device, "tags": peers(b, a)})
    t.note("a time moved", before != sorted(map(str, t.read("ProbeDevice", device, query).node["tags"]["edges"])))


@case("many")
def on_a_create(t: Talk) -> None:
    """A set on a create."""
    site, (a, b) = a_site(t), (a_tag(t, label) for label in "ab")
    made = t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site), "tags": peers(a, b)})
    t.read("ProbeDevice", made.id, _TAGS)


_ODD_SETS: tuple[tuple[str, str, Callable[[Talk], Any]], ...] = (
    ("duplicates", "Duplicates collapse.", lambda t: peers(*[a_tag(t, "b")] * 2)),
    ("null", "Null empties the set.", lambda t: None),
    ("null-in-it", "A null alone in the list empties the set.", lambda t: [None]),
    ("null-beside", "A null beside a peer is dropped.", lambda t: [peer(a_tag(t, "b")), None]),
    ("nothing-in-it", "An object that names nothing.", lambda t: [{}]),
    ("id-null", "A null id.", lambda t: [{"id": None}]),
    ("missing", "One missing peer: nothing changes.", lambda t: peers(a_tag(t, "b"), t.new_id("gone"))),
    ("missing-hfid", "One missing human-friendly id.", lambda t: [{"hfid": [t.name("gone")]}]),
    ("wrong-kind", "One peer of a wrong kind.", lambda t: peers(a_tag(t, "b"), a_site(t, "wrong"))),
    ("by-hfid", "By human-friendly id.", lambda t: [{"hfid": [t.name("a")]}]),
    (
        "mixed",
        "The same peer by id and by hfid.",
        lambda t: [peer(a_tag(t, "b")), {"hfid": [t.name("b")]}],
    ),
    ("single", "One object in place of a list.", lambda t: peer(a_tag(t, "b"))),
    ("a-text", "A text in place of a list.", lambda t: "zzz"),
    ("two-missing", "Two missing peers.", lambda t: peers(t.new_id("gone 1"), t.new_id("gone 2"))),
)


def _odd_set(made: Callable[[Talk], Any]) -> Callable[[Talk], None]:
    def hold(t: Talk) -> None:
        device = a_device(t)
        t.write("ProbeDeviceUpsert", {"id": device, "tags": peers(a_tag(t, "a"))})
        t.write("ProbeDeviceUpsert", {"id": device, "tags": made(t)})
        t.read("ProbeDevice", device, _TAGS)

    return hold


for _label, _shows, _many in _ODD_SETS:
    register(Case("many", f"set-{_label}", _shows, _odd_set(_many)))


@case("many")
def duplicates_stay(t: Talk) -> None:
    """[haz] A peer that was named twice is counted twice: the same set again and another one keep it, [] takes one."""
    device, (a, b) = a_device(t), (a_tag(t, label) for label in "ab")
    for given in (peers(a, a), peers(a), peers(a, b), [], [], peers(b, b)):
        t.write("ProbeDeviceUpsert", {"id": device, "tags": given})
        t.read("ProbeDevice", device, _TAGS)


@case("many")
def duplicates_on_a_create(t: Talk) -> None:
    """[haz] The same on a create."""
    site, a = a_site(t), a_tag(t, "a")
    made = t.write("ProbeDeviceUpsert", {**values(name=t.name()), "site": peer(site), "tags": peers(a, a)})
    t.read("ProbeDevice", made.id, _TAGS)
    t.read("ProbeTag", a, "name { value }")


@case("many")
def bounds(t: Talk) -> None:
    """A set with a lower and an upper bound."""
    a, b, c = (a_tag(t, label) for label in "abc")
    t.write("ProbeGroupUpsert", values(name=t.name("left out")))
    t.write("ProbeGroupUpsert", {**values(name=t.name("none")), "members": []})
    t.write("ProbeGroupUpsert", {**values(name=t.name("null")), "members": None})
    t.write("ProbeGroupUpsert", {**values(name=t.name("three")), "members": peers(a, b, c)})
    group = t.write("ProbeGroupUpsert", {**values(name=t.name("two")), "members": peers(a, b)}).id
    for given in (peers(a, b, c), [], None, peers(c)):
        t.write("ProbeGroupUpsert", {"id": group, "members": given})
        t.read("ProbeGroup", group, "members { count edges { node { display_label } } }")


@case("many")
def parent_without_its_components(t: Talk) -> None:
    """A parent's [] for components that need it."""
    port, device = a_port(t)
    t.write("ProbeDeviceUpsert", {"id": device, "ports": []})
    t.read("ProbePort", port, "device { node { display_label } }")


@case("many")
def component_moved_from_the_parents_side(t: Talk) -> None:
    """A component that another parent claims."""
    port, _ = a_port(t)
    other = a_device(t, "other")
    t.write("ProbeDeviceUpsert", {"id": other, "ports": peers(port)})
    t.read("ProbePort", port, "device { node { display_label } }")


@case("many")
def of_a_kind_without_any_key(t: Talk) -> None:
    """A set on a kind without any key, updated by id."""
    a, b = (a_tag(t, label) for label in "ab")
    log = t.write("ProbeLogCreate", {**values(entry="x"), "tags": peers(a)}).id
    t.write("ProbeLogUpsert", {"id": log, "tags": peers(b)})
    t.read("ProbeLog", log, _TAGS)


_ADD = """mutation R($data: RelationshipNodesInput!) { %s(data: $data) { ok } }"""


@case("relationship-mutations")
def added_and_removed(t: Talk) -> None:
    """RelationshipAdd and Remove are idempotent."""
    device, (a, b) = a_device(t), (a_tag(t, label) for label in "ab")
    for name in ("RelationshipAdd", "RelationshipAdd", "RelationshipRemove", "RelationshipRemove"):
        data = {"id": device, "name": "tags", "nodes": peers(a, b)}
        t.post(_ADD % name, {"data": data}, call=name)
        t.read("ProbeDevice", device, _TAGS)


@case("relationship-mutations")
def peer_missing(t: Talk) -> None:
    """RelationshipAdd with a missing peer, and with a missing object."""
    device, tag = a_device(t), a_tag(t)
    for node_id, other in ((device, t.new_id("gone")), (t.new_id("gone too"), tag)):
        data = {"id": node_id, "name": "tags", "nodes": peers(other)}
        t.post(_ADD % "RelationshipAdd", {"data": data}, call="RelationshipAdd")


@case("relationship-mutations")
def on_a_single_one(t: Talk) -> None:
    """RelationshipAdd on a relationship of cardinality one sets it."""
    device, site = a_device(t), a_site(t, "backup")
    data = {"id": device, "name": "backup", "nodes": peers(site)}
    t.post(_ADD % "RelationshipAdd", {"data": data}, call="RelationshipAdd")
    t.read("ProbeDevice", device, _ONE)
