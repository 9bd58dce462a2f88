"""Reads the source: rows through filters and transforms to records, streamed to the ``A/`` snapshots on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.destination import IncompleteExtractionError
from ledger.errors import ApplyLedgerError
from ledger.plan.canonical import canonical_value, same_bytes
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.plan.normal_form import normal_form
from ledger.printable import visible
from producers.errors import RowShapeError
from producers.mapping import EntryPlan, FieldPlan, MappingPlan
from producers.records import SourceRecord, given_text
from producers.references import constant_tokens, local_id_text, parse_tokens
from producers.run_directory import EndpointRows
from producers.snapshots import SnapshotSet
from producers.sources import Source
from producers.transforms import apply_transforms


class _Absent:
    """The mark of a field that a row does not have; a type of its own, so that null stays a value."""


ABSENT = _Absent()


@dataclass(slots=True)
class SourceSide:
    """Everything that the source holds for this mapping.

    ``filtered`` counts the rows that an entry's filters left out, by the entry's index; ``rows`` tells for each
    endpoint how many rows it had and how many of them no entry selected; ``given`` holds the fields, with that index,
    which at least one selected row has.
    """

    records: list[SourceRecord] = field(default_factory=list)
    filtered: Counter[int] = field(default_factory=Counter)
    rows: dict[str, EndpointRows] = field(default_factory=dict)
    given: set[tuple[int, str]] = field(default_factory=set)

    def warnings(self, mapping: MappingPlan) -> list[str]:
        """Fields whose column no selected row has: legal, and what a misspelt ``mapping`` looks like.

        What a transform assigns is no column: it may rightly give nothing for every row.
        """
        selected = {record.entry.index for record in self.records}
        return [
            f"schema_mapping.{entry.index} ({entry.kind}).{plan.name}: no row of {entry.endpoint} has {plan.source}"
            for entry in mapping.entries
            for plan in entry.fields
            if entry.index in selected
            and (entry.index, plan.name) not in self.given
            and plan.path[:1] not in {(transform.field,) for transform in entry.transforms}
        ]

    def rows_by_kind(self, kinds: Mapping[str, Any]) -> dict[str, int]:
        """Selected rows per mapped kind, zero included: what the row-count guard compares."""
        counted = Counter(record.kind for record in self.records)
        return {kind: counted[kind] for kind in kinds}


def load_source(
    source: Source, mapping: MappingPlan, snapshots: SnapshotSet, progress: Callable[[int, int | None], None]
) -> SourceSide:
    """Read every mapped endpoint once, completely.

    Faults of single rows are kept on their records; a source that cannot be read completely raises.

    Args:
        source: the plug-in.
        mapping: the compiled mapping.
        snapshots: where selected rows are written as they come.
        progress: called with rows done and the total, None where the source cannot tell it.

    Raises:
        IncompleteExtractionError: an id twice in one endpoint, or another number of rows than the source told (FF01).
        ApplyLedgerError: whatever the source refuses.
    """
    side = SourceSide()
    endpoints: dict[str, list[EntryPlan]] = {}
    for entry in mapping.entries:
        endpoints.setdefault(entry.endpoint, []).append(entry)
    counts = {endpoint: source.count(endpoint) for endpoint in endpoints}
    known = [count for count in counts.values() if count is not None]
    total = sum(known) if len(known) == len(counts) else None
    done = 0
    for endpoint, entries in endpoints.items():
        read = selected = 0
        for number, row in _checked_rows(source, endpoint, counts[endpoint]):
            records = [record for entry in entries if (record := _record(entry, number, row, side)) is not None]
            for record in records:
                side.records.append(record)
                snapshots.add_source_record(record)
            read += 1
            selected += bool(records)
            progress(done + read, total)
        done += read
        side.rows[endpoint] = EndpointRows(read=read, left_out=read - selected)
    return side


def _checked_rows(source: Source, endpoint: str, expected: int | None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The endpoint's rows with their numbers from 1; a repeated id or a wrong total ends the extraction by name."""
    seen: set[str] = set()
    number = 0
    for number, row in enumerate(source.rows(endpoint), start=1):
        local_id = local_id_text(row.get("id"))
        if local_id is not None and local_id in seen:
            raise _incomplete(endpoint, "each id once", f"id {visible(local_id)} again in row {number}")
        if local_id is not None:
            seen.add(local_id)
        yield number, row
    if expected is not None and number != expected:
        raise _incomplete(endpoint, f"{expected} rows, as the source counted before", f"{number} rows")


def _incomplete(endpoint: str, expected: str, found: str) -> IncompleteExtractionError:
    return IncompleteExtractionError(
        checked=f"the source side, endpoint {endpoint}",
        expected=expected,
        found=found,
        next_action="plan again while the source is not changing; nothing was planned",
    )


def _record(entry: EntryPlan, number: int, row: Mapping[str, Any], side: SourceSide) -> SourceRecord | None:
    """The record that an entry makes of a row; None where a filter leaves the row out."""
    record = SourceRecord(entry=entry, row=number, local_id=None)
    _take_key(row.get("id"), record)
    try:
        if not all(condition.holds(row) for condition in entry.filters):
            side.filtered[entry.index] += 1
            return None
        # the copy also keeps one entry's transforms from being seen by the next entry of the same endpoint
        changed = apply_transforms(entry.transforms, row) if entry.transforms else row
    except ApplyLedgerError as exc:
        record.faults.append(_named(exc, record))
        record.faulted = {plan.name for plan in entry.fields}
        return record
    for plan in entry.fields:
        try:
            if _extract(plan, changed, record):
                side.given.add((entry.index, plan.name))
        except ApplyLedgerError as exc:
            record.faults.append(_named(exc, record))
            record.faulted.add(plan.name)
    return record


def _take_key(value: Any, record: SourceRecord) -> None:
    """A key that cannot be recorded names no row; as the record's fault it is reported together with all others."""
    text = local_id_text(value)
    try:
        if text is not None:
            canonical_value(value, kind=record.kind, field="id")
            record.local_id = text
    except UnserializablePayloadValueError as exc:
        record.faults.append(_named(exc, record))


def _extract(plan: FieldPlan, row: Mapping[str, Any], record: SourceRecord) -> bool:
    """Put a field's value on the record; whether the row has the field at all."""
    value = plan.static if plan.is_static else value_or_absent(row, plan.path)
    if isinstance(value, _Absent):
        return False
    if plan.attribute is not None:
        normal = record.values[plan.name] = normal_form(plan.attribute, value, kind=record.kind)
        if value is not normal and not isinstance(value, list | tuple | Mapping) and not same_bytes(value, normal):
            record.given[plan.name] = given_text(value)
    elif plan.relationship is not None:
        parse = constant_tokens if plan.is_static else parse_tokens
        tokens = parse(value, many=plan.relationship.cardinality == "many", field=plan.name)
        if tokens is None:
            record.null_references.add(plan.name)
            return True
        for token in tokens:
            canonical_value(token.text, kind=record.kind, field=plan.name)
        record.tokens[plan.name] = tokens
    return True


def value_or_absent(row: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The value at a dotted path: :data:`ABSENT` when a key is missing, None when a step that is there is null.

    A step that is there and empty (``""``, ``0``, ``false``, ``[]``) counts as null, as upstream does.

    Raises:
        RowShapeError: the path continues below a value that is not an object.
    """
    if len(path) == 1 and type(row) is dict:
        return row.get(path[0], ABSENT)
    current: Any = row
    for position, step in enumerate(path):
        if isinstance(current, Mapping):
            if step not in current:
                return None if position and not current else ABSENT
            current = current[step]
        elif not current:
            return None
        else:
            raise RowShapeError(
                checked=f"the path {'.'.join(path)}",
                expected=f"an object that holds {step!r}",
                found=f"a value of type {type(current).__name__}",
                next_action="correct the mapping of this field",
            )
    return current


def _named(error: ApplyLedgerError, record: SourceRecord) -> ApplyLedgerError:
    """The same refusal with the row it is about in front."""
    return type(error)(
        checked=f"{record.label}: {error.checked}",
        expected=error.expected,
        found=error.found,
        next_action=error.next_action,
    )
