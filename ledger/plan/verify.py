"""The gate before the first write: is this the plan that was made, of this run, this configuration, these sources?

Everything is judged on the bytes of one :class:`RawPlanArtifact`; of the disk only the source snapshots are read,
which are never applied (A84). The format version comes first: when it fails, the other checks are not evaluated and
the failure says so (A86). When it passes, all of them are, and every failure is named (A87). ``schema-sub-hash.txt``
is no part of it (C53), nor is the destination, whose comparison can be overridden while this gate cannot (C54).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from ledger.errors import Finding
from ledger.plan.checksum import plan_checksum
from ledger.plan.coverage_check import coverage_problem
from ledger.plan.errors import (
    ManifestInvalidError,
    PathOutsideRunError,
    TornPlanArtifactError,
    UnrecognisedPlanFormatError,
)
from ledger.plan.files import confined, open_regular, unreadable
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE, REPLAN, SOURCE_SIDE, require_run_id, shown
from ledger.plan.manifest import decode_manifest, parse_manifest, readable_formats
from ledger.plan.reader import RawPlanArtifact, require_complete_operations
from ledger.plan.snapshot_process import SnapshotReading, read_apart

MAX_SNAPSHOTS = 1_000
"""Snapshots of one plan: one for each kind of the source side."""

GATED_CHECKS = (
    "run_binding",
    "manifest",
    "operations",
    "plan_checksum",
    "source_snapshot",
    "config_version",
    "coverage",
)

_CHECKED = {
    "format_version": f"format_version of {MANIFEST_FILE}",
    "run_binding": f"run_id of {MANIFEST_FILE}",
    "manifest": f"the fields of {MANIFEST_FILE}",
    "operations": f"the lines of {OPERATIONS_FILE}",
    "plan_checksum": "the plan checksum",
    "source_snapshot": "a source snapshot that the plan is bound to",
    "config_version": "the version of the configuration",
    "coverage": "the coverage of the plan",
    "write_surface": "whether the destination takes planned writes",
}


class VerificationFailure(BaseModel):
    """One check that failed: which, for which run, what was expected and found, and what to do next (A83)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    run_id: str
    expected: str
    found: str
    next_action: str

    def finding(self) -> Finding:
        """The failure as every other refusal of the project."""
        return Finding(
            name=self.name,
            checked=f"{_CHECKED.get(self.name, self.name)} of run {self.run_id}",
            expected=self.expected,
            found=self.found,
            next_action=self.next_action,
        )


def verify_plan(
    *,
    artifact: RawPlanArtifact,
    run_id: str,
    config_version: str | None,
    write_surface_missing_on: str | None = None,
) -> list[VerificationFailure]:
    """Check an artifact that was read; an empty list means that it is safe to parse and apply.

    Args:
        artifact: the bytes that will be parsed and applied.
        run_id: the run that is asked for; the plan must say that it is this one's (A58).
        config_version: the version computed now; None only where there is no configuration to compare with (a
            review), never for an apply.
        write_surface_missing_on: the name of a destination that takes no planned writes, else None (P11, P12).

    Returns:
        Every failure, none hiding another (A87), unless the format version is not known.

    Raises:
        PlanArtifactUnreadableError: a snapshot is there and cannot be read (A13).
        RunIdInvalidError: ``run_id`` is not one path segment.
    """
    require_run_id(run_id)
    gate = _ArtifactVerifier(artifact, run_id)
    document = gate.format_version()
    if document is not None:
        gate.run_binding(document)
        gate.manifest(document)
        gate.operations(document)
        gate.checksum(document)
        gate.source_snapshots(document)
        gate.config_version(document, config_version)
        gate.coverage(document)
    gate.write_surface(write_surface_missing_on)
    return gate.failures


class _ArtifactVerifier:
    """The checks of one verification; each adds what it finds, and none relies on another having passed."""

    def __init__(self, artifact: RawPlanArtifact, run_id: str) -> None:
        self._artifact = artifact
        self._run_id = run_id
        self.failures: list[VerificationFailure] = []

    def _fail(self, name: str, *, expected: str, found: str, next_action: str = REPLAN) -> None:
        self.failures.append(
            VerificationFailure(name=name, run_id=self._run_id, expected=expected, found=found, next_action=next_action)
        )

    def format_version(self) -> dict[str, Any] | None:
        raw = self._artifact
        try:
            return decode_manifest(None if MANIFEST_FILE in raw.missing else raw.manifest_bytes)
        except (TornPlanArtifactError, UnrecognisedPlanFormatError) as exc:
            self._fail(
                "format_version",
                expected=f"a manifest of plan format {readable_formats()}",
                found=exc.found,
                next_action=f"{exc.next_action}. The other checks were not evaluated ({', '.join(GATED_CHECKS)}): "
                "fields of an unknown format have no known meaning",
            )
            return None

    def run_binding(self, document: Mapping[str, Any]) -> None:
        recorded = document.get("run_id")
        if recorded != self._run_id:
            self._fail(
                "run_binding",
                expected=self._run_id,
                found=shown(recorded),
                next_action="name the run that made this plan; a plan copied into another run is not that run's",
            )

    def manifest(self, document: dict[str, Any]) -> None:
        try:
            parse_manifest(document)
        except ManifestInvalidError as exc:
            self._fail("manifest", expected=exc.expected, found=exc.found)

    def operations(self, document: Mapping[str, Any]) -> None:
        recorded = document.get("operations_count")
        try:
            # A count that is no integer is a fault of the manifest, and no number of lines would be right.
            require_complete_operations(self._artifact, recorded if type(recorded) is int else -1)
        except TornPlanArtifactError as exc:
            expected = exc.expected if type(recorded) is int else "a number of lines that the manifest counts"
            self._fail("operations", expected=expected, found=exc.found)

    def checksum(self, document: Mapping[str, Any]) -> None:
        if OPERATIONS_FILE in self._artifact.missing:
            return  # Already named: there are no bytes to take a checksum over.
        computed = plan_checksum(document, self._artifact.operations)
        recorded = document.get("plan_checksum")
        if computed != recorded:
            self._fail(
                "plan_checksum",
                expected=f"{shown(recorded)}, as recorded",
                found=f"{computed}: the plan was changed after it was written",
            )

    def source_snapshots(self, document: Mapping[str, Any]) -> None:
        records = document.get("source_snapshot")
        if not isinstance(records, list):
            self._fail("source_snapshot", expected="a list of snapshots", found=shown(records))
            return
        # First the checks that need no file; then all files are read, each once.
        problems = [self._record_problem(record) for record in records[:MAX_SNAPSHOTS]]
        targets = {
            record["path"]: self._artifact.run_dir / record["path"]
            for record, problem in zip(records, problems, strict=False)
            if problem is None
        }
        readings = dict(zip(targets, read_apart(list(targets.values())), strict=True))
        for record, problem in zip(records, problems, strict=False):
            found = problem if problem is not None else self._reading_problem(record, readings[record["path"]])
            if found is not None:
                self._fail("source_snapshot", expected=_recorded_snapshot(record), found=found)
        if len(records) > MAX_SNAPSHOTS:
            self._fail("source_snapshot", expected=f"at most {MAX_SNAPSHOTS:,} snapshots", found=f"{len(records):,}")

    def _record_problem(self, record: Any) -> str | None:
        """What is wrong before the snapshot is read; None where its rows have to be looked at."""
        path = record.get("path") if isinstance(record, dict) else None
        if not isinstance(path, str):
            return "a record without a path"
        if not path.startswith(f"{SOURCE_SIDE}/"):
            return f"a path outside the source side {SOURCE_SIDE}/"
        try:
            target = confined(self._artifact.run_dir, path)
        except PathOutsideRunError as exc:
            return exc.found
        file = open_regular(target)
        if file is None:
            return "no such file: keep the whole run directory, the plan alone cannot be applied"
        file.close()
        return None

    def _reading_problem(self, record: dict[str, Any], reading: SnapshotReading) -> str | None:
        if reading.unreadable:
            raise unreadable(self._artifact.run_dir / record["path"], reading.problem)
        if reading.problem:
            return reading.problem
        rows = record.get("row_count")
        same = reading.digest == record.get("digest") and type(rows) is int and rows == reading.rows
        return None if same else f"{reading.rows} rows, digest {reading.digest}"

    def config_version(self, document: Mapping[str, Any], current: str | None) -> None:
        recorded = document.get("config_version")
        if current is not None and recorded != current:
            self._fail(
                "config_version",
                expected=f"{shown(recorded)}, as recorded",
                found=f"{shown(current)}: a setting, credential or mapping was changed since",
            )

    def coverage(self, document: Mapping[str, Any]) -> None:
        problem = coverage_problem(document.get("coverage"), self._artifact.coverage)
        if problem is not None:
            self._fail("coverage", expected=problem.expected, found=problem.found)

    def write_surface(self, missing_on: str | None) -> None:
        if missing_on is not None:
            self._fail(
                "write_surface",
                expected="a destination that implements planned writes",
                found=f"{missing_on}, which does not",
                next_action="write to this destination with sync, or name a destination that takes planned writes",
            )


def _recorded_snapshot(record: Any) -> str:
    if not isinstance(record, dict):
        return "a record with path, digest and row_count"
    path, digest, rows = (shown(record.get(name)) for name in ("path", "digest", "row_count"))
    return f"{path}: {rows} rows, digest {digest}"
