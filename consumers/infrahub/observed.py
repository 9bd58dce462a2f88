"""Reads the objects of a destination for a rehearsal: from the plan's snapshot, or from the destination now.

A plan of ours keeps what it observed in ``B/``, with every object that another one refers to. A plan made elsewhere has
no such folder; then the kinds that it writes or refers to are read from the destination, which is not written to.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from consumers.infrahub.reader import InfrahubReader
from ledger.destination import FieldSelection, ObservedObject, PeerPointer
from ledger.plan.describe import is_reference
from ledger.plan.layout import DESTINATION_SIDE
from ledger.plan.model import PlannedOperation
from ledger.plan.snapshot_rows import read_rows
from ledger.schema import DestinationSchema, Kind

Wanted = dict[str, set[str]]
"""Fields by kind."""


def has_snapshot(run_dir: Path) -> bool:
    """Whether a plan kept what it observed at its destination. A new plan for an empty destination has a folder too."""
    return (run_dir / DESTINATION_SIDE).is_dir()


def observed_in_snapshot(run_dir: Path, schema: DestinationSchema) -> Iterator[ObservedObject]:
    """The objects that the plan maker saw. A kind that the schema has no more is given without its fields.

    Raises:
        PlanArtifactUnreadableError, SnapshotCorruptError: a file is not what was written.
    """
    for path in sorted((run_dir / DESTINATION_SIDE).glob("*.parquet")):
        kind = schema.node(path.stem)
        if kind is None:
            yield ObservedObject(path.stem, "", {}, {}, {})
            continue
        for row in read_rows(path, kind):
            yield _object(kind, row.source_id, row.fields)


def _object(kind: Kind, node_id: str, fields: Mapping[str, Any]) -> ObservedObject:
    """A field that the schema does not have (any more) is kept as an attribute: whoever takes it says so."""
    attributes: dict[str, Any] = {}
    one: dict[str, PeerPointer | None] = {}
    many: dict[str, tuple[PeerPointer, ...]] = {}
    for name, value in fields.items():
        relationship = kind.relationships.get(name)
        if relationship is None:
            attributes[name] = value
        elif relationship.cardinality == "one":
            one[name] = None if value is None else PeerPointer(relationship.peer, str(value))
        else:
            many[name] = tuple(PeerPointer(relationship.peer, str(item)) for item in value or ())
    return ObservedObject(kind.kind, node_id, attributes, one, many)


async def observed_now(
    reader: InfrahubReader,
    schema: DestinationSchema,
    operations: Iterable[PlannedOperation],
    progress: Callable[[int], None],
) -> list[ObservedObject]:
    """Every object of the kinds that these operations write or refer to, and of the kinds that those refer to.

    Raises:
        IncompleteExtractionError: the destination changed while it was read.
        DestinationReadError: it could not be read.
    """
    wanted = _wanted(schema, operations)
    found: list[ObservedObject] = []
    done: set[str] = set()
    while pending := sorted(wanted.keys() - done):
        for name in pending:
            done.add(name)
            async for item in reader.read(name, _selection(schema.kinds[name], wanted[name])):
                found.append(item)
                progress(len(found))
                for pointer in _pointers(item):
                    if schema.node(pointer.kind) is not None and pointer.kind not in wanted:
                        wanted[pointer.kind] = _key_fields(schema.kinds[pointer.kind])
    return found


def _wanted(schema: DestinationSchema, operations: Iterable[PlannedOperation]) -> Wanted:
    wanted: Wanted = {}
    for operation in operations:
        fields = {*operation.identity, *(operation.payload or {})}
        _want(schema, wanted, operation.kind, fields | {item.field for item in operation.relationships or ()})
        for reference in operation.relationships or ():
            for identity in reference.peers:
                _want_peer(schema, wanted, reference.peer_kind, identity)
    return wanted


def _want_peer(schema: DestinationSchema, wanted: Wanted, kind: str, identity: Mapping[str, Any]) -> None:
    for concrete in schema.concrete_kinds(kind):
        _want(schema, wanted, concrete, set(identity))
    for value in identity.values():
        if is_reference(value):
            _want_peer(schema, wanted, value["peer_kind"], value["identity"])


def kinds_of_interest(schema: DestinationSchema, operations: Iterable[PlannedOperation]) -> set[str]:
    """The kinds that these operations write or refer to, even with no peer; of a generic every kind below it."""
    stored = tuple(operations)
    named = {reference.peer_kind for operation in stored for reference in operation.relationships or ()}
    return set(_wanted(schema, stored)).union(*map(schema.concrete_kinds, named))


def narrowed(document: Mapping[str, Any], kinds: Collection[str]) -> Mapping[str, Any]:
    """A schema document without the nodes of other kinds.

    A server has more than a hundred of its own; a sandbox of all of them takes seconds to make and is used for a few.
    """
    return {**document, "nodes": [node for node in document["nodes"] if node["kind"] in kinds]}


def _want(schema: DestinationSchema, wanted: Wanted, name: str, fields: set[str]) -> None:
    kind = schema.node(name)
    if kind is None:
        return
    known = wanted.setdefault(name, _key_fields(kind))
    known |= fields & (kind.attributes.keys() | kind.relationships.keys())


def _key_fields(kind: Kind) -> set[str]:
    return {path.field for key in (kind.human_friendly_id, *kind.uniqueness_constraints) for path in key}


def _selection(kind: Kind, names: set[str]) -> FieldSelection:
    ordered = sorted(names)
    relationships = [kind.relationships[name] for name in ordered if name in kind.relationships]
    return FieldSelection(
        attributes=tuple(name for name in ordered if name in kind.attributes and not kind.attributes[name].is_secret),
        one=tuple(item.name for item in relationships if item.cardinality == "one"),
        many=tuple(item.name for item in relationships if item.cardinality == "many"),
    )


def _pointers(item: ObservedObject) -> Iterator[PeerPointer]:
    yield from (pointer for pointer in item.one.values() if pointer is not None)
    for pointers in item.many.values():
        yield from pointers
