"""Makes a plan: reads both sides, compares, checks, and writes the artifact of one run (A1, C10).

Nothing is written to the destination, and no ``plan/`` is written unless everything was read completely and, without
``--continue-on-error``, every row could be planned.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog

from ledger.destination import DestinationReader
from ledger.errors import ApplyLedgerError, Finding
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.coverage import CoverageLine, Providers, counts, coverage_bytes
from ledger.plan.files import write_durably
from ledger.plan.layout import COVERAGE_FILE, OPERATIONS_FILE
from ledger.plan.model import PlanManifest
from ledger.plan.plan_table import write_plan_table
from ledger.plan.writer import write_plan_artifact
from producers.config import LoadedConfiguration
from producers.cycle_search import seldom_searched
from producers.destination_side import DestinationSide
from producers.fault_table import write_fault_table
from producers.guards import require_no_rowcount_drop
from producers.loading import Explainer, load_sides
from producers.mapping import MappingPlan, compile_mapping
from producers.planner import ComputedPlan, Planner
from producers.progress import PlanProgress, Reporter
from producers.run_directory import (
    EndpointRows,
    RunRecord,
    create_run_directory,
    locked,
    read_rowcounts,
    write_json,
    write_run_record,
)
from producers.settings import expand_variables
from producers.snapshots import SnapshotSet
from producers.source_side import SourceSide
from producers.sources import Source, location_of, open_source

__all__ = ["PlanOptions", "PlanProgress", "PlannedRun", "make_plan"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What the person who plans decides.

    Attributes:
        continue_on_error: leave rows that cannot be planned out, each a ``skip`` with its reason (C56).
        allow_rowcount_drop: plan although a kind lost more than half of its rows (C55).
        allow_rowcount_drop_of: the same for these kinds alone.
        concurrent_load: read both sides at once (C57).
        baseline: rows per kind of the last applied plan of this source, from the ledger; None to use the file.
        ledger_position: the binding's position before the destination was read; None without a ledger.
    """

    continue_on_error: bool = False
    allow_rowcount_drop: bool = False
    allow_rowcount_drop_of: frozenset[str] = frozenset()
    concurrent_load: bool = True
    baseline: Mapping[str, int] | None = None
    ledger_position: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A plan that was written.

    ``counts`` has the five actions of the coverage; ``findings`` say what was left out; ``filtered_rows`` counts the
    rows that filters left out, by mapping entry, and ``source_rows`` all rows and those that no entry selected, by
    endpoint.
    """

    run_dir: Path
    run_id: str
    manifest: PlanManifest
    counts: Mapping[str, int]
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    filtered_rows: Mapping[str, int]
    source_rows: Mapping[str, EndpointRows]


async def make_plan(
    loaded: LoadedConfiguration,
    reader: DestinationReader,
    *,
    root: Path,
    options: PlanOptions,
    clock: Callable[[], datetime],
    progress: Callable[[PlanProgress], None] | None = None,
    environ: Mapping[str, str] | None = None,
    explain: Explainer | None = None,
) -> PlannedRun:
    """Plan one source against one destination and write the run.

    Args:
        loaded: the configuration.
        reader: reads the destination; its binding goes into the manifest.
        root: the root of all artifacts, see :func:`producers.run_directory.cache_root`.
        options: see there.
        clock: tells the time, with a zone.
        progress: called in the event loop's thread.
        environ: for ``${NAME}`` in settings; the process's own by default.
        explain: see :func:`producers.loading.load_sides`.

    Raises:
        SyncBusyError: another process plans for this sync.
        MappingRefusedError: the mapping does not fit the schema.
        IncompleteExtractionError: a side could not be read completely.
        PlanRefusedError: rows that cannot be planned, or a drop of row counts; everything is listed, and is in
            ``errors.parquet`` of the run directory.
    """
    sync_directory = root / loaded.config.name
    with seldom_searched(), locked(sync_directory):
        run_dir = create_run_directory(sync_directory, clock())
        run = _Run(loaded, reader, run_dir, options, clock, Reporter(progress))
        try:
            source = open_source(
                loaded.config.source.name,
                settings=expand_variables(loaded.config.source.settings, os.environ if environ is None else environ),
                base_directory=loaded.base_directory,
                overridden=loaded.source_settings,
                warn=run.warnings.append,
            )
            return await run.make(source, explain)
        except ApplyLedgerError as exc:
            try:
                run.record_failure(exc)
            except ApplyLedgerError as lost:  # a full disk, for example: the first failure is reported
                _log.warning("the failure of a plan could not be written beside it", error=str(lost))
            raise


class _Run:
    """One planning run and its folder."""

    def __init__(
        self,
        loaded: LoadedConfiguration,
        reader: DestinationReader,
        run_dir: Path,
        options: PlanOptions,
        clock: Callable[[], datetime],
        reporter: Reporter,
    ) -> None:
        self._loaded = loaded
        self._config = loaded.config
        self._reader = reader
        self._run_dir = run_dir
        self._options = options
        self._clock = clock
        self._reporter = reporter
        self._filtered: dict[str, int] = {}
        self._rows: dict[str, EndpointRows] = {}
        self._location: str | None = None
        self.warnings: list[str] = []

    async def make(self, source: Source, explain: Explainer | None) -> PlannedRun:
        """Read, compute, write; the manifest is the last file of the plan, ``run.json`` the last of the run."""
        self._location = location_of(source)
        mapping = compile_mapping(self._config, await self._reader.schema())
        with SnapshotSet(self._run_dir, mapping, extracted_at=self._clock()) as snapshots:
            wanted, observed = await load_sides(
                source,
                self._reader,
                mapping,
                snapshots,
                self._reporter,
                concurrent=self._options.concurrent_load,
                explain=explain,
            )
            self._filtered = {entry.label: wanted.filtered[entry.index] for entry in mapping.entries}
            self._rows = wanted.rows
            self._guard(wanted.rows_by_kind(mapping.kinds))
            computed = await self._reporter.in_thread(self._compute, mapping, wanted, observed)
            self._reporter.report("writing", 0, len(computed.operations))
            source_snapshot = await self._reporter.in_thread(snapshots.close)
        self._write_sidecars(mapping)
        tally = counts(computed.coverage)
        manifest = write_plan_artifact(
            self._run_dir,
            operations=computed.operations,
            coverage_lines=coverage_bytes(computed.coverage),
            coverage_counts=tally,
            run_id=self._run_dir.name,
            created_at=self._clock(),
            config_version=self._loaded.config_version,
            source=self._config.name,
            binding=self._reader.binding,
            source_snapshot=source_snapshot,
            delete_operations_computed=computed.delete_operations_computed,
        )
        # For queries alone (C40): the plan is whole without it, and it is made from the plan's own files.
        files = (self._run_dir / OPERATIONS_FILE, self._run_dir / COVERAGE_FILE)
        await self._reporter.in_thread(write_plan_table, self._run_dir, *files)
        write_fault_table(self._run_dir, computed.findings)
        self.warnings = [*self._loaded.warnings, *self.warnings, *wanted.warnings(mapping), *computed.warnings]
        self._write_run_record("planned", tally)
        self._log_skips(computed)
        self._reporter.report("writing", len(computed.operations), len(computed.operations))
        return PlannedRun(
            run_dir=self._run_dir,
            run_id=self._run_dir.name,
            manifest=manifest,
            counts=tally,
            findings=tuple(computed.findings),
            warnings=tuple(self.warnings),
            filtered_rows=self._filtered,
            source_rows=self._rows,
        )

    def record_failure(self, error: ApplyLedgerError) -> None:
        """Leave the refusal's findings and a ``run.json`` that says ``failed``; there is no ``plan/`` then."""
        write_fault_table(self._run_dir, error.findings)
        self._write_run_record("failed", {"errors": len(error.findings)})

    def _guard(self, rows: Mapping[str, int]) -> None:
        if not self._options.allow_rowcount_drop:
            baseline = self._options.baseline
            require_no_rowcount_drop(
                rows,
                read_rowcounts(self._run_dir.parent) if baseline is None else baseline,
                allowed=self._options.allow_rowcount_drop_of,
            )

    def _compute(self, mapping: MappingPlan, wanted: SourceSide, observed: DestinationSide) -> ComputedPlan:
        return Planner(
            name=self._config.name,
            mapping=mapping,
            records=wanted.records,
            destination=observed,
            flags=self._config.flags,
            continue_on_error=self._options.continue_on_error,
            providers=Providers(source=self._config.source.name, destination=self._config.destination.name),
            progress=self._reporter.report,
        ).compute()

    def _write_sidecars(self, mapping: MappingPlan) -> None:
        """Cursors are null: both sides are always read completely (C6). The hash tells when the shape changed (C7)."""
        nothing_incremental = dict.fromkeys(sorted(mapping.kinds))
        write_json(self._run_dir / "cursors.json", {"A": nothing_incremental, "B": nothing_incremental})
        write_durably(self._run_dir / "schema-sub-hash.txt", f"{schema_sub_hash(mapping)}\n".encode())

    def _write_run_record(self, status: str, summary: Mapping[str, int]) -> None:
        write_run_record(
            self._run_dir,
            RunRecord(
                status=status,
                summary=dict(summary),
                finished_at=self._clock().astimezone(UTC).isoformat(timespec="microseconds"),
                configuration=str(self._loaded.path),
                source_settings=dict(self._loaded.source_settings),
                source_location=self._location,
                ledger_position=self._options.ledger_position,
                filtered_rows=self._filtered,
                source_rows=self._rows,
                warnings=self.warnings,
            ),
        )

    @staticmethod
    def _log_skips(computed: ComputedPlan) -> None:
        for line in computed.coverage:
            if isinstance(line, CoverageLine) and line.action == "skip":
                _log.warning("left out of the plan", kind=line.kind, identity=line.identity, reason=line.reason)


def schema_sub_hash(mapping: MappingPlan) -> str:
    """Digest of the shape of everything that is read: kinds, their fields, and their keys."""
    shapes = []
    for name in sorted(mapping.kinds):
        kind, selection = mapping.kinds[name].kind, mapping.selection(name)
        fields = (*selection.attributes, *selection.one, *selection.many)
        shapes.append(
            {
                "kind": name,
                "identifiers": mapping.identity_fields(name),
                "fields": {
                    field: asdict(kind.attributes[field] if field in kind.attributes else kind.relationships[field])
                    for field in fields
                },
                "keys": [[path.raw for path in key] for key in (kind.human_friendly_id, *kind.uniqueness_constraints)],
            }
        )
    return hashlib.sha256(canonical_json_bytes(shapes)).hexdigest()
