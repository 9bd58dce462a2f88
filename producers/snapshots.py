"""The snapshots of both sides, one file per kind, written while the sides are read (C4, design 4.10).

``A/`` holds the selected source rows as the plan sees them: attributes in normal form, references by the key that the
row gives. The manifest binds the plan to it. ``B/`` holds the destination's objects; nothing is bound to it.
"""

from __future__ import annotations

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ledger.plan.attribute_values import value_faults
from ledger.plan.errors import SchemaMismatchError, SnapshotValueError
from ledger.plan.layout import DESTINATION_SIDE, SOURCE_SIDE
from ledger.plan.model import SourceSnapshotRecord
from ledger.plan.snapshot import ColumnType, EncodedCell, SnapshotWriter
from ledger.plan.snapshot_rows import column_type
from ledger.schema import Attribute
from producers.mapping import MappingPlan
from producers.records import ObservedRecord, SourceRecord
from producers.references import LocalId, PeerToken

_INT64 = range(-(2**63), 2**63)
_REMEMBERED_REFERENCES = 10_000
_PYTHON = {ColumnType.INTEGER: int, ColumnType.BOOLEAN: bool, ColumnType.TEXT: str}


class SnapshotSet:
    """All snapshots of one run. A source kind without rows still gets a file with its columns (FF04)."""

    def __init__(self, run_dir: Path, mapping: MappingPlan, *, extracted_at: datetime) -> None:
        self._run_dir = run_dir
        self._mapping = mapping
        self._extracted_at = extracted_at
        self._stack = ExitStack()
        self._source: dict[str, SnapshotWriter] = {}
        self._types: dict[str, dict[str, type | None]] = {}
        self._reference_cells: dict[tuple[PeerToken, ...], EncodedCell] = {}
        self._destination: dict[str, SnapshotWriter] = {}
        for kind in sorted(mapping.kinds):
            self._source[kind] = self._open(SOURCE_SIDE, kind, mapping.kinds[kind].fields)
            attributes = mapping.schema.kinds[kind].attributes
            self._types[kind] = {name: _PYTHON.get(column_type(attributes[name])) for name in attributes}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._stack.__exit__(type(error), error, trace)

    def _open(self, side: str, kind: str, fields: tuple[str, ...]) -> SnapshotWriter:
        directory = self._run_dir / side
        directory.mkdir(exist_ok=True)
        attributes = self._mapping.schema.kinds[kind].attributes
        columns = {name: column_type(attributes.get(name)) for name in fields}
        writer = SnapshotWriter(
            directory / f"{kind}.parquet", kind=kind, columns=columns, extracted_at=self._extracted_at
        )
        self._stack.push(writer)
        return writer

    def add_source_record(self, record: SourceRecord) -> None:
        """Write a source record; a value that its attribute cannot hold becomes a fault of the record instead."""
        attributes = self._mapping.schema.kinds[record.kind].attributes
        types = self._types[record.kind]
        misfits = [name for name, value in record.values.items() if value is not None and not _fits(types[name], value)]
        for name in misfits:
            record.faults.append(_misfit(record, attributes[name], record.values[name]))
            record.faulted.add(name)
        if misfits:
            return
        row: dict[str, Any] = dict(record.values)
        for name, tokens in record.tokens.items():
            row[name] = self._reference_cell(tokens, record.kind, name)
        source_id = record.local_id if record.local_id is not None else str(record.row)
        self._source[record.kind].write(source_id, row)

    def add_observed_record(self, record: ObservedRecord) -> None:
        """Write an object of the destination."""
        writer = self._destination.get(record.kind)
        if writer is None:
            selection = self._mapping.selection(record.kind)
            fields = (*selection.attributes, *selection.one, *selection.many)
            writer = self._destination[record.kind] = self._open(DESTINATION_SIDE, record.kind, fields)
        row: dict[str, Any] = dict(record.values)
        for name, pointer in record.one.items():
            row[name] = None if pointer is None else pointer.id
        for name, items in record.many.items():
            row[name] = [item.id for item in items]
        writer.write(record.id, row)

    def _reference_cell(self, tokens: tuple[PeerToken, ...], kind: str, name: str) -> EncodedCell:
        """Many rows refer to the same peers, one after the other mostly."""
        cell = self._reference_cells.get(tokens)
        if cell is None:
            if len(self._reference_cells) >= _REMEMBERED_REFERENCES:
                self._reference_cells.clear()
            value = [{"id" if isinstance(token, LocalId) else "unique_id": token.text} for token in tokens]
            cell = self._reference_cells[tokens] = EncodedCell.of(value, kind=kind, field=name)
        return cell

    def close(self) -> list[SourceSnapshotRecord]:
        """Finish all files; the records of the source side, by path (A61)."""
        for writer in self._destination.values():
            writer.close()
        return sorted((writer.close() for writer in self._source.values()), key=lambda record: record.path)


def _fits(expected: type | None, value: Any) -> bool:
    return expected is None or (type(value) is expected and (expected is not int or value in _INT64))


def _misfit(record: SourceRecord, attribute: Attribute, value: Any) -> SchemaMismatchError | SnapshotValueError:
    faults = value_faults(attribute, value)
    expected = faults[0].expected if faults else f"a value of kind {attribute.kind}"
    found = faults[0].found if faults else f"a value of type {type(value).__name__}"
    error = SchemaMismatchError if faults else SnapshotValueError
    return error(
        checked=f"field {attribute.name} of {record.label}",
        expected=expected,
        found=found,
        next_action="correct the mapping entry or the source and make a new plan",
    )
