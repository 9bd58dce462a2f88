"""Compares rebuilt objects with the recorded state in one pass over each side, in bounded memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.drill import MAX_NAMED, Drill, observed_objects
from ledger.audit.spill import ObjectSpill
from ledger.audit.state import ObjectState
from ledger.destination import DestinationReader, FieldSelection, ObservedObject, ProvenUnwrittenError
from ledger.plan.canonical import canonical_json_bytes, object_key
from ledger.plan.normal_form import normal_form
from ledger.schema import DestinationSchema, Kind

_EXPECTED, _FOUND = 0, 1


@dataclass(slots=True)
class Comparison:
    """What was compared, and what differs.

    Attributes:
        equal: objects that are as asserted.
        different: objects that are not.
        passed_over: objects that could not be rebuilt, so that they are not compared.
        differences: the first of those that differ, each with its fields.
    """

    equal: int = 0
    different: int = 0
    passed_over: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class DrillComparison:
    """Feed it every asserted state, then compare."""

    drill: Drill
    schema: DestinationSchema
    spill: ObjectSpill
    result: Comparison = field(default_factory=Comparison)
    _fields: dict[str, set[str]] = field(default_factory=dict)

    async def expect(self, state: ObjectState) -> None:
        """Take one asserted state."""
        node_id = self.drill.keys.get(state.object_key)
        kind = None if state.kind is None else self.schema.node(state.kind)
        if node_id is None or kind is None or state.object_key in self.drill.spoiled:
            self.result.passed_over += 1
            return
        self._fields.setdefault(kind.kind, set()).update(state.fields)
        values = {name: await self._asserted(kind, name, value) for name, value in state.fields.items()}
        record = {"kind": kind.kind, "identity": state.identity, "values": values}
        self.spill.put(_place(kind.kind, node_id), _EXPECTED, canonical_json_bytes(record))

    async def compare(self, reader: DestinationReader) -> Comparison:
        """Read the target and compare; an object that was never written counts as a difference."""
        selections = {name: _selection(self.schema.kinds[name], fields) for name, fields in self._fields.items()}
        async for item in observed_objects(reader, selections):
            record = {"kind": item.kind, "identity": item.id, "values": self._observed(item)}
            self.spill.put(_place(item.kind, item.id), _FOUND, canonical_json_bytes(record))
        for _, records in self.spill.objects():
            self._judge(dict(records))
        return self.result

    def _judge(self, records: Mapping[int, bytes]) -> None:
        expected: Any = json.loads(records[_EXPECTED]) if _EXPECTED in records else None
        found: Any = json.loads(records[_FOUND]) if _FOUND in records else None
        if expected is None or found is None:
            there = {"asserted": expected is not None, "found": found is not None}
            self._note(found if expected is None else expected, {"": there})
            return
        fields = {
            name: {"asserted": value, "found": found["values"].get(name)}
            for name, value in expected["values"].items()
            if value != found["values"].get(name)
        }
        if fields:
            self._note(expected, fields)
        else:
            self.result.equal += 1

    def _note(self, record: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
        self.result.different += 1
        if len(self.result.differences) < MAX_NAMED:
            self.result.differences.append(
                {"kind": record["kind"], "identity": record["identity"], "fields": dict(fields)}
            )

    async def _asserted(self, kind: Kind, name: str, value: Any) -> Any:
        """In the form in which an observed value is compared: normal form, references as sorted ids of now."""
        if name in kind.relationships:
            pointers = value if isinstance(value, list) else [] if value is None else [value]
            return sorted([await self._peer(pointer) for pointer in pointers])
        attribute = kind.attributes.get(name)
        return value if attribute is None else normal_form(attribute, value, kind=kind.kind)

    async def _peer(self, pointer: Mapping[str, Any]) -> str:
        """The id of now; of an object that no run of the ledger wrote, that of the one that the target has itself."""
        kinds: Iterable[str] = self.schema.concrete_kinds(pointer["peer_kind"]) or (pointer["peer_kind"],)
        found = (self.drill.keys.get(object_key(kind, pointer["identity"])) for kind in kinds)
        rebuilt = next((node_id for node_id in found if node_id is not None), None)
        if rebuilt is not None:
            return rebuilt
        try:
            return await self.drill.peers.resolve(
                peer_kind=pointer["peer_kind"],
                identity=pointer["identity"],
                referring_operation_id="the comparison of the restore test",
            )
        except ProvenUnwrittenError:
            return "neither rebuilt nor there"

    def _observed(self, item: ObservedObject) -> dict[str, Any]:
        attributes = self.schema.kinds[item.kind].attributes
        values: dict[str, Any] = {
            name: normal_form(attributes[name], value, kind=item.kind) for name, value in item.attributes.items()
        }
        values |= {name: [] if pointer is None else [pointer.id] for name, pointer in item.one.items()}
        values |= {name: sorted(pointer.id for pointer in pointers) for name, pointers in item.many.items()}
        return values


def _selection(kind: Kind, fields: set[str]) -> FieldSelection:
    one = sorted(name for name in fields & set(kind.relationships) if kind.relationships[name].cardinality == "one")
    many = sorted(name for name in fields & set(kind.relationships) if name not in one)
    return FieldSelection(attributes=sorted(fields & set(kind.attributes)), one=one, many=many)


def _place(kind: str, node_id: str) -> bytes:
    return hashlib.sha256(canonical_json_bytes([kind, node_id])).digest()
