"""A destination in memory: read like a real one, and changed by applying operations to it."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ledger.binding import DestinationBinding
from ledger.destination import FieldSelection, ObservedObject, PeerPointer
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.model import PlannedOperation
from ledger.schema import DestinationSchema, Kind, parse_schema

DATA = Path(__file__).parents[1] / "data"
_NAMESPACE = uuid.UUID("6f1f3a0e-5a52-4f0e-9d86-3a3c9a3f7b11")


@cache
def real_schema() -> DestinationSchema:
    """The schema that both inventories are mapped to."""
    return parse_schema(json.loads((DATA / "schema-api.json").read_bytes()))


@dataclass(slots=True)
class StoredObject:
    """One object as the destination keeps it."""

    kind: str
    id: str
    attributes: dict[str, Any] = field(default_factory=dict)
    one: dict[str, PeerPointer | None] = field(default_factory=dict)
    many: dict[str, list[PeerPointer]] = field(default_factory=dict)


class FakeDestination:
    """Implements ``DestinationReader`` over objects in memory; unset attributes read as their default, or null."""

    def __init__(
        self,
        schema: DestinationSchema | None = None,
        *,
        binding: DestinationBinding | None = None,
        namespaces: Iterable[str] = ("default",),
    ) -> None:
        self._schema = schema or real_schema()
        self._binding = binding or DestinationBinding(url="http://infrahub.example:8000", branch="main")
        self.objects: dict[str, dict[str, StoredObject]] = {}
        self.requested: dict[str, FieldSelection] = {}
        self._by_identity: dict[bytes, StoredObject] = {}
        for name in namespaces:
            self.add("IpamNamespace", name=name)

    @property
    def binding(self) -> DestinationBinding:
        """What is read."""
        return self._binding

    async def schema(self) -> DestinationSchema:
        """The schema."""
        return self._schema

    async def counts(self, kinds: Sequence[str]) -> Mapping[str, int]:
        """Number of objects of each kind."""
        return {kind: len(self.objects.get(kind, {})) for kind in kinds}

    async def read(self, kind: str, fields: FieldSelection) -> AsyncIterator[ObservedObject]:
        """All objects of a kind, with the requested fields only."""
        self.requested[kind] = fields
        known = self._schema.kinds[kind]
        for item in list(self.objects.get(kind, {}).values()):
            yield self._observed(item, fields, known)

    def _observed(self, item: StoredObject, fields: FieldSelection, kind: Kind) -> ObservedObject:
        def value(name: str) -> Any:
            stored = item.attributes.get(name)
            return kind.attributes[name].default if stored is None else stored

        return ObservedObject(
            kind=item.kind,
            id=item.id,
            attributes={name: value(name) for name in fields.attributes},
            one={name: item.one.get(name) for name in fields.one},
            many={name: tuple(item.many.get(name, ())) for name in fields.many},
        )

    def add(self, kind: str, /, **fields: Any) -> StoredObject:
        """Add an object; stored objects stand for peers, lists of them for many."""
        number = sum(len(objects) for objects in self.objects.values())
        item = StoredObject(kind=kind, id=str(uuid.uuid5(_NAMESPACE, f"{kind} {number}")))
        self._set(item, fields)
        self.objects.setdefault(kind, {})[item.id] = item
        return item

    def _set(self, item: StoredObject, fields: Mapping[str, Any]) -> None:
        kind = self._schema.kinds[item.kind]
        for name, value in fields.items():
            if name in kind.attributes:
                item.attributes[name] = copy.deepcopy(value)
            elif kind.relationships[name].cardinality == "one":
                item.one[name] = None if value is None else PeerPointer(value.kind, value.id)
            else:
                item.many[name] = [PeerPointer(peer.kind, peer.id) for peer in value]

    def copy(self) -> FakeDestination:
        """Another destination with the same objects; what is done to one does not show in the other."""
        other = FakeDestination(self._schema, binding=self._binding, namespaces=())
        other.objects = copy.deepcopy(self.objects)
        return other

    def named(self, kind: str, **attributes: Any) -> StoredObject:
        """The one object of a kind with these attribute values."""
        found = [
            item
            for item in self.objects.get(kind, {}).values()
            if all(item.attributes.get(name) == value for name, value in attributes.items())
        ]
        assert len(found) == 1, f"{len(found)} objects of {kind} with {attributes}"
        return found[0]

    def apply(self, operations: Iterable[PlannedOperation]) -> None:
        """Apply creates and updates in the given order; recorded deletes are left, as the service leaves them.

        A peer that is not there yet raises, so the order of the plan is checked on the way.
        """
        self._by_identity.clear()
        for operation in operations:
            if operation.action != "delete":
                self._write(operation)

    def _write(self, operation: PlannedOperation) -> None:
        fields: dict[str, Any] = dict(operation.payload or {})
        for reference in operation.relationships or ():
            peers = [self._peer(reference.peer_kind, identity) for identity in reference.peers]
            fields[reference.field] = peers if reference.cardinality == "many" else peers[0]
        if operation.action == "create":
            item = self.add(operation.kind, **fields)
        else:
            item = self.objects[operation.kind][operation.destination_id or ""]
            self._set(item, fields)
        self._by_identity[self._plan_key(operation.kind, operation.identity)] = item

    def _peer(self, kind: str, identity: Mapping[str, Any]) -> StoredObject:
        found = self._by_identity.get(self._plan_key(kind, identity))
        if found is None:
            found = self._search(kind, identity)
        return found

    def _search(self, kind: str, identity: Mapping[str, Any]) -> StoredObject:
        for item in self.objects.get(kind, {}).values():
            if all(self._component(item, name) == self._wanted(value) for name, value in identity.items()):
                self._by_identity[self._plan_key(kind, identity)] = item
                return item
        raise LookupError(f"no {kind} {dict(identity)} yet")

    def _component(self, item: StoredObject, name: str) -> Any:
        if name in item.one:
            pointer = item.one[name]
            return None if pointer is None else (pointer.kind, pointer.id)
        return item.attributes.get(name)

    def _wanted(self, value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"identity", "peer_kind"}:
            peer = self._peer(value["peer_kind"], value["identity"])
            return (peer.kind, peer.id)
        return value

    @staticmethod
    def _plan_key(kind: str, identity: Mapping[str, Any]) -> bytes:
        return canonical_json_bytes([kind, dict(identity)])
