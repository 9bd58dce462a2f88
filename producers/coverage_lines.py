"""The coverage lines of a plan: one for every resource that was considered (design 4.12, H5 to H19)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.plan.canonical import canonical_value
from ledger.plan.coverage import CoverageLine, Difference, MappingEntry, Providers
from ledger.plan.model import DECODED, PlannedOperation
from ledger.plan.unchanged_line import Selection, UnchangedLine
from producers.destination_side import DestinationSide
from producers.drafts import Draft, observed_values, wanted_value
from producers.mapping import EntryPlan, MappingPlan
from producers.records import ObservedRecord, SourceRecord
from producers.references import LocalId

SOURCE_ID = "_source_id"
DESTINATION_ID = "_destination_id"
"""Stand beside the known parts of an identity that is incomplete or not unique, to tell such resources apart."""


class CoverageLines:
    """Makes the lines of one plan."""

    def __init__(
        self, mapping: MappingPlan, destination: DestinationSide, providers: Providers, kind_tiers: Mapping[str, int]
    ) -> None:
        self._mapping = mapping
        self._destination = destination
        self._providers = providers
        self._kind_tiers = kind_tiers
        self._selected: dict[int, dict[str, Any]] = {}
        self._unchanged: dict[int, Selection] = {}

    def changed(self, draft: Draft, operation: PlannedOperation) -> CoverageLine:
        """A create, or an update with observed and desired value of each differing field (H7, H8, H16)."""
        differences = {}
        if draft.observed is not None:
            observed = observed_values(draft.observed, draft.differing, self._destination)
            differences = {
                name: Difference(observed=observed.get(name), desired=wanted_value(draft.record, name))
                for name in draft.differing
            }
        return _line(
            kind=operation.kind,
            identity=operation.identity,
            action="create" if draft.observed is None else "update",
            tier=operation.tier,
            operation_id=operation.operation_id,
            destination_id=operation.destination_id,
            differences=differences,
            reason=_cut_text(draft),
            **self._selected_by(draft.record.entry),
        )

    def unchanged(self, record: SourceRecord, observed: ObservedRecord) -> UnchangedLine:
        """A resource that is as wanted (H6, H11)."""
        selection = self._unchanged.get(record.entry.index)
        if selection is None:
            selection = self._unchanged[record.entry.index] = Selection(
                kind=record.kind, tier=self._kind_tiers[record.kind], **self._selected_by(record.entry)
            )
        return UnchangedLine(selection, record.identity or {}, record.identity_text, observed.id)

    def left_out(self, record: SourceRecord, *, unique: bool) -> CoverageLine:
        """A row for which nothing is planned, with the reason (H10, H19)."""
        found = self._destination.matches(record.kind, record.identity_text) if record.identity is not None else []
        identity = record.identity if unique and record.identity is not None else self._partial(record)
        return CoverageLine(
            kind=record.kind,
            identity=identity,
            action="skip",
            tier=self._kind_tiers[record.kind],
            destination_id=found[0].id if len(found) == 1 else None,
            reason=record.reason,
            **self._selected_by(record.entry),
        )

    def removed(self, observed: ObservedRecord, operation: PlannedOperation) -> CoverageLine:
        """A recorded delete, with the values that were there: an inverse plan reads them (H9)."""
        plan = self._mapping.kinds[observed.kind]
        values = observed_values(observed, plan.fields, self._destination)
        entry = plan.entries[0] if len(plan.entries) == 1 else None
        selected = {"providers": self._providers} if entry is None else self._selected_by(entry)
        return CoverageLine(
            kind=observed.kind,
            identity=operation.identity,
            action="remove",
            tier=operation.tier,
            operation_id=operation.operation_id,
            destination_id=observed.id,
            differences={name: Difference(observed=value, desired=None) for name, value in values.items()},
            **selected,
        )

    def constant(self, observed: ObservedRecord, referrer: str) -> CoverageLine:
        """An object of the destination alone that a constant reference uses, so that it is no delete."""
        return CoverageLine(
            kind=observed.kind,
            identity=observed.identity or {},
            action="none",
            tier=self._kind_tiers[observed.kind],
            destination_id=observed.id,
            reason=f"in use as the constant peer of {referrer}",
            **self._selected_by(self._mapping.kinds[observed.kind].entries[0]),
        )

    def unmatched(self, observed: ObservedRecord, reason: str) -> CoverageLine:
        """An object of the destination that cannot be matched, so that not even a delete can be recorded for it."""
        names = self._mapping.kinds[observed.kind].identifiers
        values = observed_values(observed, names, self._destination)
        return CoverageLine(
            kind=observed.kind,
            identity={**values, DESTINATION_ID: observed.id},
            action="skip",
            tier=self._kind_tiers[observed.kind],
            destination_id=observed.id,
            reason=reason,
            **self._selected_by(self._mapping.kinds[observed.kind].entries[0]),
        )

    def _selected_by(self, entry: EntryPlan) -> dict[str, Any]:
        selected = self._selected.get(entry.index)
        if selected is None:
            selected = self._selected[entry.index] = {
                "entry": MappingEntry(index=entry.index, name=entry.endpoint),
                "filters": [
                    {
                        "field": ".".join(item.path),
                        "operation": item.operation,
                        "value": canonical_value(item.value, kind=entry.kind, field="filters"),
                    }
                    for item in entry.filters
                ],
                "providers": self._providers,
            }
        return selected

    def _partial(self, record: SourceRecord) -> dict[str, Any]:
        known: dict[str, Any] = {}
        for name in self._mapping.kinds[record.kind].identifiers:
            if name in record.values:
                known[name] = record.values[name]
            elif name in record.tokens:
                known[name] = [
                    {"id" if isinstance(item, LocalId) else "unique_id": item.text} for item in record.tokens[name]
                ]
        return {**known, SOURCE_ID: record.local_id if record.local_id is not None else f"row {record.row}"}


def _line(**values: Any) -> CoverageLine:
    """A line of a record or an operation: its identity is canonical since it was made."""
    return CoverageLine.model_validate(values, context=DECODED)


def _cut_text(draft: Draft) -> str | None:
    if not draft.cut:
        return None
    fields = ", ".join(sorted(draft.cut))
    return f"left out of this create: {fields}, which closes a circle of creates; the next plan carries it as an update"
