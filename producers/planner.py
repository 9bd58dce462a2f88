"""Computes operations and coverage from both sides; reads and writes nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from diffsync.enum import DiffSyncFlags

from ledger.errors import Finding
from ledger.plan.coverage import CoverageLine, Providers
from ledger.plan.model import PlannedOperation
from ledger.plan.unchanged_line import UnchangedLine
from producers.coverage_lines import CoverageLines
from producers.destination_side import DestinationSide
from producers.diffsync_plan import Compared, Side, compare, compared_text
from producers.drafts import Draft, delete_operation, draft_operation, observed_values, wanted_fields
from producers.errors import PeerLeftOutError, PlanRefusedError
from producers.kept_values import warn_of_kept_values
from producers.mapping import MappingPlan
from producers.ordering import kind_tiers, operation_tiers, report_cycles
from producers.peer_index import PeerIndex
from producers.records import ObservedRecord, SourceRecord
from producers.resolution import resolve_records
from producers.row_checks import (
    check_ambiguous,
    check_collisions,
    check_drafts,
    check_duplicates,
    check_values_without_identity,
)
from producers.tiers import Tiers


@dataclass(slots=True)
class ComputedPlan:
    """What a plan says, before it is written. ``findings`` are the faults of what was left out."""

    operations: list[PlannedOperation] = field(default_factory=list)
    coverage: list[CoverageLine | UnchangedLine] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    delete_operations_computed: bool = True


class Planner:
    """Makes one plan.

    Args:
        name: the sync's name, for refusals.
        mapping: the compiled mapping.
        records: the source's records.
        destination: what was observed.
        flags: diffsync's flags of the configuration.
        continue_on_error: leave faulty rows, and what depends on them, out instead of refusing the plan.
        providers: the names of both adapters.
        progress: called with a phase, the number done and the total.
    """

    def __init__(
        self,
        *,
        name: str,
        mapping: MappingPlan,
        records: list[SourceRecord],
        destination: DestinationSide,
        flags: DiffSyncFlags,
        continue_on_error: bool,
        providers: Providers,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._name = name
        self._mapping = mapping
        self._records = records
        self._destination = destination
        self._flags = flags
        self._continue = continue_on_error
        self._progress = progress
        self._kind_tiers = kind_tiers(mapping)
        self._lines = CoverageLines(mapping, destination, providers, self._kind_tiers)
        self._index = PeerIndex(records, mapping, destination)
        self._drafts: list[Draft] = []
        self._unchanged: list[tuple[SourceRecord, ObservedRecord]] = []
        self._deletes: list[tuple[ObservedRecord, PlannedOperation]] = []
        self._result = ComputedPlan(delete_operations_computed=not flags & DiffSyncFlags.SKIP_UNMATCHED_DST)

    def compute(self) -> ComputedPlan:
        """The plan.

        Raises:
            PlanRefusedError: rows that cannot be planned, all of them, unless ``continue_on_error``.
        """
        self._phase("resolving references", 0)
        resolve_records(self._records, self._mapping, self._index)
        check_duplicates(self._records, self._mapping)
        check_ambiguous(self._records, self._destination)
        check_values_without_identity(self._records, self._mapping.schema)
        self._compare()
        self._phase("checking operations", 0)
        check_drafts(self._drafts, self._mapping.schema)
        self._check_collisions()
        self._warn_of_nulls()
        self._result.warnings += warn_of_kept_values(self._drafts)
        tiers = self._order()
        self._refuse()
        self._phase("ordering operations", len(self._drafts))
        self._emit(tiers)
        return self._result

    def _phase(self, name: str, done: int) -> None:
        self._progress(name, done, len(self._records))

    def _compare(self) -> None:
        wanted: dict[str, dict[str, dict[str, str]]] = {kind: {} for kind in self._mapping.kinds}
        by_object: dict[tuple[str, str], SourceRecord] = {}
        for record in self._records:
            if record.is_comparable and (record.kind, record.identity_text) not in by_object:
                by_object[record.kind, record.identity_text] = record
                wanted[record.kind][record.identity_text] = wanted_fields(record)
        found = compare(
            Side("source", wanted),
            Side("destination", {kind: self._observed_fields(kind) for kind in self._mapping.kinds}),
            kinds=self._mapping.kinds,
            flags=self._flags,
            progress=lambda done, total: self._progress("comparing", done, total),
        )
        for item in sorted(found, key=lambda item: (item.kind, item.identity)):
            self._take(item, by_object.pop((item.kind, item.identity), None))
        for record in by_object.values():
            if self._flags & DiffSyncFlags.SKIP_UNMATCHED_SRC and not self._matches(record):
                record.left_out = "not at the destination, and diffsync_flags has SKIP_UNMATCHED_SRC"

    def _observed_fields(self, kind: str) -> dict[str, dict[str, str]]:
        """What the objects of a kind are compared by; several of one identity are no subject of the comparison."""
        plan = self._mapping.kinds[kind]
        names = tuple(name for name in plan.fields if name not in plan.identifiers)
        return {
            text: {
                name: compared_text(value)
                for name, value in observed_values(group[0], names, self._destination).items()
            }
            for text, group in self._destination.by_identity.get(kind, {}).items()
            if len(group) == 1
        }

    def _matches(self, record: SourceRecord) -> list[ObservedRecord]:
        return [] if record.identity is None else self._destination.matches(record.kind, record.identity_text)

    def _take(self, item: Compared, record: SourceRecord | None) -> None:
        matches = self._destination.matches(item.kind, item.identity)
        if record is None:
            # a row that has this identity and cannot be planned still says that the object is wanted
            wanted = self._index.same_identity(item.kind, item.identity)
            if not wanted and (item.kind, item.identity) not in self._index.constants:
                self._deletes.append((matches[0], delete_operation(matches[0])))
        elif item.change == "none":
            self._unchanged.append((record, matches[0]))
        elif len(matches) <= 1:
            observed = matches[0] if matches else None
            operation = draft_operation(record, self._mapping, observed=observed)
            self._drafts.append(Draft(record, operation, observed, item.fields))

    def _check_collisions(self) -> None:
        """With ``continue_on_error`` a create that is left out anyway must not cost another one its place."""
        drafts = [item for item in self._drafts if not (self._continue and item.record.is_left_out)]
        self._result.warnings += check_collisions(drafts, self._unchanged, self._destination, self._mapping)

    def _warn_of_nulls(self) -> None:
        """A null reference takes no peer away: the plan format cannot express it, so this must be reported (P91)."""
        matched = [(draft.record, draft.observed) for draft in self._drafts if draft.observed is not None]
        kept = Counter(
            (record.entry.label, record.kind, name)
            for record, observed in [*matched, *self._unchanged]
            for name in record.null_references
            if observed.one.get(name) is not None or observed.many.get(name)
        )
        self._result.warnings += [
            f"{kind}.{name} is null in {count:,} rows of {entry} whose objects have peers there; they keep them, "
            "because a plan cannot say that a peer goes (an empty list empties a set)"
            for (entry, kind, name), count in sorted(kept.items())
        ]

    def _order(self) -> Tiers:
        """Tiers of what is planned; where creates wait for each other in a circle, they are left out and it is asked
        again, because others may depend on them.
        """
        while True:
            self._leave_out_dependants()
            planned = [item for item in self._drafts if not item.record.is_left_out]
            tiers = operation_tiers(planned, self._deletes, self._mapping, self._destination)
            if not report_cycles(tiers, planned):
                return tiers

    def _leave_out_dependants(self) -> None:
        """A record whose peer is left out and not at the destination is left out too, to any depth."""
        dependants: dict[int, list[tuple[str, SourceRecord]]] = {}
        for record in self._records:
            for name, peer in record.referred:
                dependants.setdefault(id(peer), []).append((name, record))
        pending = [record for record in self._records if record.is_left_out and not self._matches(record)]
        while pending:
            missing = pending.pop()
            for name, record in dependants.get(id(missing), ()):
                if not record.is_left_out:
                    record.left_out = f"{name} refers to {missing.label}, which is left out and not at the destination"
                    if not self._matches(record):
                        pending.append(record)

    def _refuse(self) -> None:
        findings: dict[str, Finding] = {}
        for record in self._records:
            for fault in record.faults:
                # the peer's own fault is the one to correct; what depends on it is counted only
                if self._continue or not isinstance(fault, PeerLeftOutError):
                    findings.update((str(finding), finding) for finding in fault.findings)
        self._result.findings = list(findings.values())
        if findings and not self._continue:
            dependants = sum(1 for record in self._records if record.is_left_out and not _has_own_fault(record))
            depending = f", with {dependants:,} rows that depend on them" if dependants else ""
            raise PlanRefusedError(
                checked=f"the rows of {self._name}{depending}",
                findings=self._result.findings,
                next_action="correct the source or the mapping, or plan with --continue-on-error to leave them out",
            )

    def _emit(self, tiers: Tiers) -> None:
        for draft in self._drafts:
            if not draft.record.is_left_out:
                operation = self._final(draft, tiers)
                self._result.operations.append(operation)
                self._result.coverage.append(self._lines.changed(draft, operation))
        for record, observed in self._unchanged:
            if not record.is_left_out:
                self._result.coverage.append(self._lines.unchanged(record, observed))
        for observed, operation in self._deletes:
            final = operation.model_copy(update={"tier": tiers.tiers[operation.operation_id]})
            self._result.operations.append(final)
            self._result.coverage.append(self._lines.removed(observed, final))
        self._result.coverage += self._left_out_lines()
        if self._result.delete_operations_computed:
            self._result.coverage += self._destination_only_lines()

    def _final(self, draft: Draft, tiers: Tiers) -> PlannedOperation:
        operation = draft.operation
        draft.cut = tiers.cut.get(operation.operation_id, set())
        if draft.cut:
            cut = frozenset(draft.cut)
            operation = draft_operation(draft.record, self._mapping, observed=draft.observed, left_out=cut)
        return operation.model_copy(update={"tier": tiers.tiers[operation.operation_id]})

    def _left_out_lines(self) -> Iterable[CoverageLine]:
        shared = Counter((record.entry.index, record.identity_text) for record in self._records if record.identity)
        for record in self._records:
            if record.is_left_out:
                unique = record.identity is not None and shared[record.entry.index, record.identity_text] == 1
                yield self._lines.left_out(record, unique=unique)

    def _destination_only_lines(self) -> Iterable[CoverageLine]:
        """Objects of mapped kinds that are neither matched nor deleted: constants, and what cannot be matched."""
        for kind in self._mapping.kinds:
            for record in self._destination.records(kind):
                text = record.identity_text
                if record.identity is None:
                    yield self._lines.unmatched(record, f"cannot be matched: {record.unidentified}")
                elif self._index.same_identity(kind, text):
                    continue
                elif len(self._destination.matches(kind, text)) > 1:
                    yield self._lines.unmatched(record, "cannot be matched: others there have the same identity")
                elif (kind, text) in self._index.constants:
                    yield self._lines.constant(record, self._index.constants[kind, text])


def _has_own_fault(record: SourceRecord) -> bool:
    return any(not isinstance(fault, PeerLeftOutError) for fault in record.faults)
