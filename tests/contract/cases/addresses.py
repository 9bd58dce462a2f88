"""Prefixes, addresses and their namespaces: what the server fills in, moves and works out by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.cases.case import Case, Conversation, case, register
from tests.contract.cases.talk import Talk, peer, peers, values

Holding = Callable[[Talk, str, str, str], None]

_PLACE = "hfid ip_namespace { node { display_label } }"
_PARENT = "parent { node { display_label } }"
_TREE = f"prefix {{ value }} is_top_level {{ value }} {_PARENT} children {{ count }} ip_addresses {{ count }}"
_KINDS = (("IpamPrefix", "prefix", "198.18.{}.0/24"), ("IpamIPAddress", "address", "198.18.{}.1/32"))


def _namespace(t: Talk, label: str = "space") -> str:
    return t.write("IpamNamespaceUpsert", values(name=t.name(label))).id


def _default(t: Talk) -> str:
    """The namespace that is there from the beginning."""
    reply = t.find("IpamNamespace", {"name__value": "default"}, "id default { value }")
    return t.known(str(reply.node["id"]), "default namespace")


def _prefix(t: Talk, text: str, space: str, **fields: Any) -> str:
    return t.write("IpamPrefixUpsert", {**values(prefix=text, **fields), "ip_namespace": peer(space)}).id


def _tree(t: Talk, *prefixes: str) -> None:
    for prefix in prefixes:
        t.read("IpamPrefix", prefix, _TREE)


def _both(label: str, shows: str, hold: Holding, number: int) -> None:
    """One case for prefixes and one for addresses."""
    for kind, field, text in _KINDS:
        register(Case("address", f"{label}-{field}", shows, _of(hold, kind, field, text.format(number))))


def _of(hold: Holding, kind: str, field: str, text: str) -> Conversation:
    return lambda t: hold(t, kind, field, text)


def _without_namespace(t: Talk, kind: str, field: str, text: str) -> None:
    made = t.write(f"{kind}Upsert", values(**{field: text})).id
    t.read(kind, made, _PLACE)
    t.write(f"{kind}Upsert", values(**{field: text, "description": "again"}))
    t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(_default(t))})
    t.write(f"{kind}Create", values(**{field: text}))
    t.read(kind, made, f"{_PLACE} description {{ value }}")


_both(
    "without-a-namespace",
    "Without a namespace it falls into the default one, and converges there.",
    _without_namespace,
    1,
)


def _in_two(t: Talk, kind: str, field: str, text: str) -> None:
    spaces = [_namespace(t, label) for label in ("one", "two")]
    for space in spaces:
        made = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(space)}).id
        t.read(kind, made, _PLACE)
    t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": {"hfid": [t.name("one")]}})


_both("in-two-namespaces", "The same text in two namespaces is two objects.", _in_two, 2)


def _moved(t: Talk, kind: str, field: str, text: str) -> None:
    space = _namespace(t)
    made = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(space)}).id
    t.write(f"{kind}Upsert", {"id": made, **values(description="x")})
    t.read(kind, made, f"{_PLACE} description {{ value }}")


_both(
    "update-by-id-without-its-namespace",
    "[haz] An upsert by id that does not name the namespace moves the object into the default one.",
    _moved,
    3,
)


def _kept(t: Talk, kind: str, field: str, text: str) -> None:
    space = _namespace(t)
    made = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(space)}).id
    t.write(f"{kind}Update", {"id": made, **values(description="x")})
    t.read(kind, made, f"{_PLACE} description {{ value }}")
    t.write(f"{kind}Upsert", {"id": made, **values(description="y"), "ip_namespace": peer(space)})
    t.read(kind, made, f"{_PLACE} description {{ value }}")


_both("update-that-keeps-its-namespace", "An update by id keeps it, and so does an upsert that names it.", _kept, 4)


def _onto(t: Talk, kind: str, field: str, text: str) -> None:
    space = _namespace(t)
    t.write(f"{kind}Upsert", values(**{field: text}))
    made = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(space)}).id
    t.write(f"{kind}Upsert", {"id": made, **values(description="x")})
    t.read(kind, made, f"{_PLACE} description {{ value }}")


_both(
    "update-by-id-onto-another",
    "The same where the default namespace holds that text already: refused by the constraint.",
    _onto,
    5,
)


def _stale(t: Talk, kind: str, field: str, text: str) -> None:
    tag = t.write("BuiltinTagUpsert", values(name=t.name())).id
    space = _namespace(t)
    made = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": peer(space)}).id
    t.write(f"{kind}Delete", {"id": made})
    for node_id in (t.new_id("gone"), made, tag):
        for form in ("Upsert", "Update"):
            t.write(f"{kind}{form}", {"id": node_id, **values(description="x")})


_both("id-that-is-gone", "Ids that are unknown, deleted, or of another kind, by upsert and by update.", _stale, 6)


def _odd_namespaces(t: Talk, kind: str, field: str, text: str) -> None:
    for label, given in (
        ("null", None),
        ("nothing", {}),
        ("unknown", peer(t.new_id("gone"))),
        ("unknown-hfid", {"hfid": [t.name("gone")]}),
    ):
        call = f"{kind}Upsert, namespace: {label}"
        reply = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": given}, call=call)
        if reply.ok:
            t.read(kind, reply.id, _PLACE)


_both("odd-namespace", "A namespace that is null, names nothing, or is not there.", _odd_namespaces, 7)


def _left_out(t: Talk, kind: str, field: str, text: str) -> None:
    for form in ("Upsert", "Create"):
        t.write(f"{kind}{form}", values(description="x"))
        t.write(f"{kind}{form}", {field: {"value": None}})
        t.write(f"{kind}{form}", {field: {"value": "no address"}})


_both("without-its-value", "The address itself left out, null, or none.", _left_out, 8)


def _by_hfid(t: Talk, kind: str, field: str, text: str) -> None:
    _namespace(t)
    made = t.write(f"{kind}Upsert", {**values(**{field: text}), "ip_namespace": {"hfid": [t.name("space")]}}).id
    t.write(f"{kind}Update", {"hfid": [text, t.name("space")], **values(description="x")})
    t.write(f"{kind}Delete", {"hfid": [text, t.name("space")]})
    t.read(kind, made, f"{_PLACE} description {{ value }}")
    t.write(f"{kind}Delete", {"id": made})
    t.write(f"{kind}Delete", {"id": made})


_both("by-human-friendly-id", "Updated and deleted by human-friendly id, and deleted twice.", _by_hfid, 9)


def _under_own_id(t: Talk, kind: str, field: str, text: str) -> None:
    own, space = t.new_id(), _namespace(t)
    data = {"id": own, **values(**{field: text}), "ip_namespace": peer(space)}
    t.write(f"{kind}Create", data)
    t.write(f"{kind}Create", data)
    t.read(kind, own, _PLACE)


_both("under-an-id-of-ours", "Created under an id that the client chose, twice.", _under_own_id, 10)


@case("address")
def tree_of_prefixes(t: Talk) -> None:
    """Each prefix and address finds its parent, whatever the order in which they were made."""
    space = _namespace(t)
    small = _prefix(t, "10.1.1.0/24", space)
    address = t.write("IpamIPAddressUpsert", {**values(address="10.1.1.7"), "ip_namespace": peer(space)}).id
    large = _prefix(t, "10.0.0.0/8", space, member_type="prefix")
    _tree(t, small, large)
    middle = _prefix(t, "10.1.0.0/16", space, member_type="prefix")
    _tree(t, small, middle, large)
    t.read("IpamIPAddress", address, "address { value } ip_prefix { node { display_label } }")
    t.write("IpamPrefixDelete", {"id": small})
    t.read("IpamIPAddress", address, "ip_prefix { node { display_label } }")
    t.write("IpamPrefixDelete", {"id": middle})
    _tree(t, large)
    t.read("IpamIPAddress", address, "ip_prefix { node { display_label } }")


@case("address")
def tree_after_an_update(t: Talk) -> None:
    """[haz] An upsert by id that changes a prefix leaves the tree as it was; an update puts it right."""
    space = _namespace(t)
    large, other = _prefix(t, "10.0.0.0/8", space), _prefix(t, "172.16.0.0/12", space)
    small = _prefix(t, "10.1.0.0/16", space)
    moved = {"id": small, **values(prefix="172.16.1.0/24"), "ip_namespace": peer(space)}
    t.write("IpamPrefixUpsert", moved)
    _tree(t, small, large, other)
    t.write("IpamPrefixUpdate", {"id": small, **values(prefix="172.16.1.0/24")})
    _tree(t, small, large, other)


@case("address")
def tree_after_an_upsert_of_the_same_key(t: Talk) -> None:
    """The same prefix again changes nothing in the tree."""
    space = _namespace(t)
    large, small = _prefix(t, "10.0.0.0/8", space), _prefix(t, "10.1.0.0/16", space)
    _prefix(t, "10.1.0.0/16", space, description="x")
    _tree(t, large, small)


@case("address")
def tree_of_addresses(t: Talk) -> None:
    """Addresses of both families, with and without a length, find the smallest prefix around them."""
    space = _namespace(t)
    for text in ("10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "2001:db8:1::/48"):
        _prefix(t, text, space)
    for text in ("10.1.0.1/24", "10.1.0.2", "10.2.0.1/8", "11.0.0.1", "2001:db8:1::1/64", "2001:db8:2::1"):
        made = t.write("IpamIPAddressUpsert", {**values(address=text), "ip_namespace": peer(space)}).id
        t.read("IpamIPAddress", made, "address { value } ip_prefix { node { display_label } }")


@case("address")
def facts_of_a_prefix(t: Talk) -> None:
    """What the server works out of a prefix, for both families and for a single address."""
    space = _namespace(t)
    read = "prefix { value } " + " ".join(
        f"{name} {{ value }}" for name in ("netmask", "hostmask", "network_address", "broadcast_address")
    )
    for text in ("10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "0.0.0.0/0"):
        t.read("IpamPrefix", _prefix(t, text, space), read)


@case("address")
def parent_is_not_for_clients(t: Talk) -> None:
    """Parent, children and the prefix of an address are no fields of a write."""
    space = _namespace(t)
    large = _prefix(t, "10.0.0.0/8", space)
    t.write("IpamPrefixUpsert", {**values(prefix="10.1.0.0/16"), "ip_namespace": peer(space), "parent": peer(large)})
    address = {**values(address="10.1.0.1"), "ip_namespace": peer(space)}
    t.write("IpamIPAddressUpsert", {**address, "ip_prefix": peer(large)})


@case("address")
def namespace_deleted(t: Talk) -> None:
    """A namespace with prefixes and addresses is deleted."""
    space = _namespace(t)
    prefix = _prefix(t, "10.0.0.0/8", space)
    address = t.write("IpamIPAddressUpsert", {**values(address="10.0.0.1"), "ip_namespace": peer(space)}).id
    t.write("IpamNamespaceDelete", {"id": space})
    t.read("IpamPrefix", prefix, "id")
    t.read("IpamIPAddress", address, "id")


@case("address")
def default_namespace_stays(t: Talk) -> None:
    """The default namespace cannot be deleted, nor its mark be set on another."""
    t.write("IpamNamespaceDelete", {"id": _default(t)})
    t.write("IpamNamespaceUpsert", values(name=t.name(), default=True))


@case("address")
def set_of_addresses(t: Talk) -> None:
    """A namespace's own list of prefixes, written from its side."""
    one, two = _namespace(t, "one"), _namespace(t, "two")
    prefix = _prefix(t, "10.0.0.0/8", one)
    t.write("IpamNamespaceUpsert", {"id": two, "ip_prefixes": peers(prefix)})
    t.read("IpamPrefix", prefix, _PLACE)


@case("address")
def read_across_kinds(t: Talk) -> None:
    """Prefixes and addresses read through their generics."""
    space = _namespace(t)
    _prefix(t, "10.0.0.0/8", space)
    t.write("IpamIPAddressUpsert", {**values(address="10.0.0.1"), "ip_namespace": peer(space)})
    t.find("BuiltinIPPrefix", {"ip_namespace__ids": [space]}, "__typename hfid display_label prefix { value }")
    t.find("BuiltinIPAddress", {"ip_namespace__ids": [space]}, "__typename hfid display_label address { value }")
    t.find("BuiltinIPNamespace", {"name__value": t.name("space")}, "__typename display_label")
