"""Finds objects that the source distinguishes and the destination does not (P61, design 4.3).

Every create is compared with every other object of either side in its final state: created, updated, unchanged, or
there at the destination alone. Two objects collide where the destination would take them for one: by the human-friendly
id of their kind, or by a uniqueness rule of the kind or of a generic that it inherits from. A generic's rule reaches
across all its kinds, as it does on the server. Updates are no subject of the check (P62: a write keyed by an id cannot
land on another object), but the values that they will have are the other side.

How parts are compared:

* an own attribute by the canonical bytes of its normal form, never by Python values (``1``, ``1.0``, ``true``);
* a part across a relationship by the peer's kind and identity, because the server compares the peer, not its text.
  Two keys that differ in their peers alone but read the same are a warning (:meth:`CollisionIndex.near_misses`);
* null of an attribute is a value: the server stores and compares it, so a second null under a unique optional
  attribute violates uniqueness. A create that leaves the attribute out has its default, or null;
* a part that is not known of an object (a field that was not read, an update that does not carry it, no peer)
  takes the object out of that rule.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ledger.plan.canonical import canonical_json_bytes, canonical_json_text, identity_bytes
from ledger.plan.describe import SecretFields, is_reference, object_text
from ledger.plan.errors import DestinationIdentityCollisionError
from ledger.plan.model import PlannedOperation
from ledger.plan.normal_form import normal_form, normalise_peer_identity
from ledger.schema import Attribute, DestinationSchema, KeyPath, Kind

Origin = Literal["create", "update", "unchanged", "destination"]

MAX_NAMED = 20
"""Objects that one refusal names; the number of the others is reported."""

_NUMBER_BITS = 2**64 - 1
_REMEMBERED_PEERS = 50_000
_NULL_COUNTS = " (null, which the destination stores and compares like any value)"
_ORIGIN_TEXT: Mapping[Origin, str] = {
    "create": "created by this plan",
    "update": "updated by this plan",
    "unchanged": "unchanged",
    "destination": "only at the destination",
}


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    kind: str
    identity: Mapping[str, Any]
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class _Rule:
    """One thing by which the destination tells objects apart, and the objects found by their keys.

    ``scope`` is the kind or generic that the rule belongs to.
    """

    scope: str
    name: str
    parts: tuple[KeyPath, ...]
    objects: dict[bytes, list[_Entry]] = field(default_factory=dict)

    @property
    def fields(self) -> frozenset[str]:
        """What makes two rules of one scope the same: a human-friendly id is repeated as a constraint."""
        return frozenset(path.field for path in self.parts)


class CollisionIndex:
    """Collects objects in their final state, each once, and finds those that the destination would merge.

    Made for about 25,000 objects in a second: each object costs one key per rule of its kind.
    """

    def __init__(self, schema: DestinationSchema) -> None:
        self._schema = schema
        self._rules_by_kind: dict[str, tuple[_Rule, ...]] = {}
        self._rules: dict[tuple[str, frozenset[str]], _Rule] = {}
        self._alike: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
        self._peers: dict[bytes, bytes] = {}
        self._created: set[str] = set()
        self._reached: set[_Rule] = set()
        self._folded_peers: dict[int, tuple[Mapping[str, Any], str]] = {}

    def add(
        self,
        kind: str,
        identity: Mapping[str, Any],
        attributes: Mapping[str, Any],
        peers: Mapping[str, Mapping[str, Any] | None],
        origin: Origin,
    ) -> None:
        """Add one object in its final state.

        Args:
            kind: a concrete kind; one that the schema does not have is left out (the value check names it).
            identity: the object's identity, for the refusal's text.
            attributes: attribute name to value. Of a create, what it sends; of others, what is known.
            peers: cardinality-one relationship to ``{"identity": ..., "peer_kind": ...}``, or None where it is empty.
            origin: where the object comes from.

        Raises:
            UnserializablePayloadValueError: a key part has no canonical form.
        """
        known = self._schema.node(kind)
        if known is None:
            return
        if origin == "create" and kind not in self._created:
            self._created.add(kind)
            self._reached.update(self._rules_of(known))
        entry = _Entry(kind, identity, origin)
        for rule, key in self._keys(known, attributes, peers, origin):
            rule.objects.setdefault(key, []).append(entry)
        for text in {self._folded(identity), self._read_as(known, attributes, peers)} - {""}:
            self._alike[kind, text].append(entry)

    def reaches(self, kind: str) -> bool:
        """Whether an object of this kind could collide with a create that was added, or read like it.

        Objects are compared with objects of their own kind, and by the rules that their kind shares with others. Where
        no create has any of them, an object can be left out: it changes neither refusals nor warnings.
        """
        known = self._schema.node(kind)
        return known is not None and (kind in self._created or not self._reached.isdisjoint(self._rules_of(known)))

    def add_operation(self, operation: PlannedOperation) -> None:
        """Add what an operation leaves behind, as far as it says.

        A recorded delete is not executed: its object stays at the destination, known by its identity alone.
        """
        self.add(operation.kind, operation.identity, *_final_state(operation))

    def key_numbers(self, operation: PlannedOperation) -> list[int]:
        """One number below 2**64 for each key that the operation's object has; the object is not added.

        Equal keys of one rule have equal numbers. Unequal ones have unequal numbers almost always; only within one
        process, because numbers are drawn again for each.
        """
        known = self._schema.node(operation.kind)
        if known is None:
            return []
        keys = self._keys(known, *_final_state(operation))
        return [hash((rule.scope, rule.name, key)) & _NUMBER_BITS for rule, key in keys]

    def collisions(self) -> list[DestinationIdentityCollisionError]:
        """One refusal for each set of objects that the destination would take for one and that holds a create.

        The order depends on the objects and the schema alone, not on the order in which they were added.
        """
        sets: dict[tuple[int, ...], tuple[list[_Entry], list[_Rule], bool]] = {}
        for rule in self._rules.values():
            for key, entries in rule.objects.items():
                if len(entries) > 1 and any(entry.origin == "create" for entry in entries):
                    null = b"null" in key.split(b"\x00")
                    held = sets.setdefault(tuple(sorted(map(id, entries))), (entries, [], null))
                    held[1].append(rule)
        refusals = [self._refusal(entries, rules, null=null) for entries, rules, null in sets.values()]
        return sorted(refusals, key=lambda refusal: (refusal.checked, refusal.found))

    def near_misses(self) -> list[str]:
        """Warnings, not refusals: identities of one kind that a person would read as the same.

        They differ in case, in Unicode composition, in characters that cannot be seen, or only in a peer. The
        destination keeps them apart; at least one of each set is about to be created.
        """
        warnings = set()
        for (kind, _), entries in self._alike.items():
            if len(entries) < 2 or not any(entry.origin == "create" for entry in entries):
                continue
            distinct = {identity_bytes(entry.kind, entry.identity): entry for entry in entries}
            if len(distinct) > 1:
                named = self._named([distinct[key] for key in sorted(distinct)])
                warnings.add(f"these objects of {kind} read alike and stay {len(distinct)} objects: {named}")
        return sorted(warnings)

    def _keys(
        self,
        kind: Kind,
        attributes: Mapping[str, Any],
        peers: Mapping[str, Mapping[str, Any] | None],
        origin: Origin,
    ) -> Iterator[tuple[_Rule, bytes]]:
        """The uniqueness rules of an object's kind, each with the object's key."""
        for rule in self._rules_of(kind):
            key = self._key(kind, rule, attributes, peers, origin)
            if key is not None:
                yield rule, key

    def _rules_of(self, kind: Kind) -> tuple[_Rule, ...]:
        known = self._rules_by_kind.get(kind.kind)
        if known is None:
            shared = [self._rules.setdefault((rule.scope, rule.fields), rule) for rule in self._declared(kind)]
            known = self._rules_by_kind[kind.kind] = tuple(dict.fromkeys(shared))
        return known

    def _declared(self, kind: Kind) -> list[_Rule]:
        """A rule of a generic makes the same rule of the kind itself needless: it reaches further."""
        generics = [self._schema.kinds[name] for name in kind.inherit_from if name in self._schema.kinds]
        inherited = [
            _constraint_rule(generic, parts) for generic in generics for parts in generic.uniqueness_constraints
        ]
        own = [_constraint_rule(kind, parts) for parts in kind.uniqueness_constraints]
        if kind.human_friendly_id:
            parts = kind.human_friendly_id
            own.insert(0, _Rule(kind.kind, f"human-friendly id ({_paths(parts)})", parts))
        covered = {rule.fields for rule in inherited}
        return inherited + [rule for rule in own if rule.fields not in covered]

    def _key(
        self,
        kind: Kind,
        rule: _Rule,
        attributes: Mapping[str, Any],
        peers: Mapping[str, Mapping[str, Any] | None],
        origin: Origin,
    ) -> bytes | None:
        parts = []
        for path in rule.parts:
            if path.relationship is not None:
                part = self._peer_part(peers.get(path.relationship))
            else:
                part = _attribute_part(kind, kind.attributes.get(path.field), attributes, origin)
            if part is None:
                return None
            parts.append(part)
        return b"\x00".join(parts)

    def _peer_part(self, peer: Mapping[str, Any] | None) -> bytes | None:
        if peer is None:
            return None
        given = canonical_json_bytes([peer["peer_kind"], peer["identity"]])
        part = self._peers.get(given)
        if part is None:
            if len(self._peers) >= _REMEMBERED_PEERS:
                self._peers.clear()
            identity = normalise_peer_identity(self._schema, peer["peer_kind"], peer["identity"])
            part = self._peers[given] = canonical_json_bytes([peer["peer_kind"], identity])
        return part

    def _read_as(self, kind: Kind, attributes: Mapping[str, Any], peers: Mapping[str, Mapping[str, Any] | None]) -> str:
        """The human-friendly id as text, where it crosses a relationship: what look-ups by it would ask for."""
        if not any(path.relationship for path in kind.human_friendly_id):
            return ""
        parts = []
        for path in kind.human_friendly_id:
            peer = peers.get(path.relationship) if path.relationship else None
            values = attributes if path.relationship is None else (peer or {}).get("identity", {})
            if path.attribute is None or path.attribute not in values:
                return ""
            parts.append(self._folded_value(values[path.attribute]))
        return "\x00".join(parts)

    def _folded(self, identity: Mapping[str, Any]) -> str:
        return "\x00".join([f"{name}={self._folded_value(identity[name])}" for name in sorted(identity)])

    def _folded_value(self, value: Any) -> str:
        if isinstance(value, str):
            return _folded_text(value)
        return self._folded_peer(value["identity"]) if is_reference(value) else canonical_json_text(value)

    def _folded_peer(self, identity: Mapping[str, Any]) -> str:
        """Peers are shared by the objects that refer to them; each is kept, so that its number stays its own."""
        known = self._folded_peers.get(id(identity))
        if known is None:
            if len(self._folded_peers) >= _REMEMBERED_PEERS:
                self._folded_peers.clear()
            known = self._folded_peers[id(identity)] = identity, f"({self._folded(identity)})"
        return known[1]

    def _refusal(
        self, entries: Sequence[_Entry], rules: Sequence[_Rule], *, null: bool
    ) -> DestinationIdentityCollisionError:
        ordered = sorted(entries, key=lambda entry: identity_bytes(entry.kind, entry.identity))
        counted = {path.field for rule in rules for path in rule.parts}
        ignored = sorted({name for entry in entries for name in entry.identity} - counted)
        reasons = "; ".join(sorted({f"{rule.name} of {rule.scope}" for rule in rules}))
        does_not_count = f"; {', '.join(ignored)} does not count there" if ignored else ""
        refusal = DestinationIdentityCollisionError(
            checked=f"whether the destination can tell {len(entries)} objects of {rules[0].scope} apart",
            expected=f"objects that differ by the {reasons}",
            found=f"the same{_NULL_COUNTS if null else ''} for {self._named(ordered)}{does_not_count}",
            next_action="map a field that differs into that key, exclude all but one with a filter, "
            "or extend the key in the destination's schema; then make a new plan",
        )
        refusal.objects = tuple((entry.kind, entry.identity) for entry in ordered)
        return refusal

    def _named(self, entries: Sequence[_Entry]) -> str:
        secrets = SecretFields(self._schema)
        named = [
            f"{object_text(entry.kind, entry.identity, secrets=secrets)} [{_ORIGIN_TEXT[entry.origin]}]"
            for entry in entries[:MAX_NAMED]
        ]
        more = f" and {len(entries) - MAX_NAMED:,} more" if len(entries) > MAX_NAMED else ""
        return " and ".join(named) + more


def _final_state(
    operation: PlannedOperation,
) -> tuple[Mapping[str, Any], Mapping[str, Mapping[str, Any] | None], Origin]:
    """Attributes, cardinality-one peers and origin of what an operation leaves behind, as far as it says."""
    if operation.action == "delete":
        known = {name: value for name, value in operation.identity.items() if is_reference(value)}
        return operation.identity, known, "destination"
    peers = {
        reference.field: {"identity": reference.peers[0], "peer_kind": reference.peer_kind}
        for reference in operation.relationships or ()
        if reference.cardinality == "one"
    }
    return operation.payload or {}, peers, operation.action


def _constraint_rule(kind: Kind, parts: tuple[KeyPath, ...]) -> _Rule:
    return _Rule(kind.kind, f"uniqueness rule ({_paths(parts)})", parts)


def _paths(parts: Sequence[KeyPath]) -> str:
    return ", ".join(path.raw for path in parts)


def _attribute_part(
    kind: Kind, attribute: Attribute | None, attributes: Mapping[str, Any], origin: Origin
) -> bytes | None:
    if attribute is None:
        return None
    if attribute.name in attributes:
        value = attributes[attribute.name]
    elif origin == "create" and not attribute.read_only:
        value = None  # left out of a create: the normal form makes it the default, or null
    else:
        return None
    return canonical_json_bytes(normal_form(attribute, value, kind=kind.kind))


def _folded_text(value: str) -> str:
    if value.isascii():
        return value.lower()
    seen = "".join(char for char in unicodedata.normalize("NFKC", value) if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen.casefold())
