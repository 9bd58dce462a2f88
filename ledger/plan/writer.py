"""Writing a plan artifact: coverage, then operations, then the manifest, whose presence is the commit point (A5, C32).

Everything that can be refused about the operations is refused before the first byte is written, and a run that has a
``plan/`` is never written again: what a person reviewed stays what it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ledger.binding import DestinationBinding
from ledger.plan.canonical import canonical_json_bytes, canonical_value
from ledger.plan.checksum import plan_checksum
from ledger.plan.coverage_check import ActionCounter
from ledger.plan.decode import MAX_LINE_BYTES, require_bounded
from ledger.plan.errors import (
    DuplicateOperationIdError,
    LineTooLongError,
    ManifestInvalidError,
    PlanOperationInvalidError,
    SnapshotValueError,
)
from ledger.plan.files import already_written, sync_directory, write_durably, write_failures_of
from ledger.plan.layout import (
    COVERAGE_FILE,
    MANIFEST_FILE,
    OPERATIONS_FILE,
    PLAN_DIRECTORY,
    SOURCE_SIDE,
    require_run_id,
    shown,
)
from ledger.plan.manifest import parse_manifest
from ledger.plan.model import (
    FORMAT_VERSION,
    REGISTRY_KEYS,
    PlanManifest,
    PlannedOperation,
    SourceSnapshotRecord,
)

_OWN_KEYS = frozenset(PlanManifest.model_fields)


def write_plan_artifact(
    run_dir: Path,
    *,
    operations: Iterable[PlannedOperation],
    coverage_lines: Iterable[bytes] | None,
    coverage_counts: Mapping[str, int] | None,
    run_id: str,
    created_at: datetime,
    config_version: str,
    source: str | None,
    binding: DestinationBinding | None,
    source_snapshot: Sequence[SourceSnapshotRecord],
    delete_operations_computed: bool,
    extra: Mapping[str, Any] | None = None,
) -> PlanManifest:
    """Write ``plan/`` of a run and return its manifest.

    Args:
        run_dir: the run directory, named like the run; it already contains the snapshots.
        operations: in any order; they are stored by (tier, operation_id).
        coverage_lines: canonical lines with newlines in stored order, or None for a plan without coverage.
        coverage_counts: a count for each of the five actions; given exactly where the lines are.
        run_id: one path segment.
        created_at: with a zone; stored in UTC.
        config_version: see :mod:`ledger.plan.config_version`.
        source: the sync's name.
        binding: the destination, without credentials; the spelling is kept.
        source_snapshot: one record for each snapshot, in any order.
        delete_operations_computed: false where the destination was not read completely (A63, C37).
        extra: further keys of the manifest; inside the checksum, so they must not change between equal plans.

    Raises:
        PlanArtifactError: before anything is written: RunIdInvalidError, DuplicateOperationIdError (A55, C15),
            PlanOperationInvalidError (an update without its object's id), LineTooLongError, TooManyValuesError,
            ManifestInvalidError, PlanAlreadyWrittenError; later, and then without a manifest: ManifestInvalidError
            (counts of the coverage), LineTooLongError and TooManyValuesError (of the coverage), PlanWriteFailedError.
    """
    _require_own_directory(run_dir, run_id)
    lines = _ordered_lines(operations)
    document = {
        "format_version": FORMAT_VERSION,
        "run_id": run_id,
        "created_at": _utc(created_at).isoformat(timespec="microseconds"),
        "config_version": config_version,
        "source_snapshot": [dict(record) for record in _ordered_snapshots(source_snapshot)],
        "operations_count": len(lines),
        "delete_operations_computed": delete_operations_computed,
        **_optional("source", source),
        **_optional("destination_binding", None if binding is None else dict(binding)),
        **_further_keys(extra or {}),
    }
    # A first look with a checksum in the place of the real one: what can be refused is refused before any write.
    parse_manifest({**document, "plan_checksum": "0" * 64})
    _create_plan_directory(run_dir)
    if coverage_lines is not None:
        document["coverage"] = _write_coverage(run_dir, coverage_lines, coverage_counts)
    operations_bytes = b"".join(lines)
    write_durably(run_dir / OPERATIONS_FILE, operations_bytes, replace=False)
    document["plan_checksum"] = plan_checksum(document, operations_bytes)
    manifest = parse_manifest(document)
    write_durably(run_dir / MANIFEST_FILE, canonical_json_bytes(document), replace=False)
    return manifest


def _require_own_directory(run_dir: Path, run_id: str) -> None:
    require_run_id(run_id)
    if run_dir.name != run_id:
        raise ManifestInvalidError(
            checked=f"the run directory of run {run_id}",
            expected="a directory named like the run",
            found=shown(run_dir.name),
            next_action="write each plan into the directory of its own run",
        )


def _ordered_lines(operations: Iterable[PlannedOperation]) -> list[bytes]:
    ordered = sorted(operations, key=lambda operation: (operation.tier, operation.operation_id))
    seen: dict[str, PlannedOperation] = {}
    for operation in ordered:
        other = seen.setdefault(operation.operation_id, operation)
        if other is not operation:
            raise DuplicateOperationIdError(
                checked=f"the operations {operation.operation_id}",
                expected="one operation for each action, kind and identity",
                found=f"two: {_object(other)} and {_object(operation)}",
                next_action="make the identities of the two source objects differ, or leave one of them out",
            )
        if operation.action == "update" and operation.destination_id is None:
            raise PlanOperationInvalidError(
                checked=f"the update {operation.operation_id} of {_object(operation)}",
                expected="the id that the destination gave its object",
                found="none",
                next_action="read the destination again and make a fresh plan",
            )
    return [_line(operation) for operation in ordered]


def _line(operation: PlannedOperation) -> bytes:
    line = operation.line()
    _require_readable(line, f"the {operation.action} {operation.operation_id} of {operation.kind}")
    return line


def _require_readable(line: bytes, what: str) -> None:
    """A line that no reader would accept is not written: its size, its depth, the number of its values."""
    if len(line) > MAX_LINE_BYTES:
        raise LineTooLongError(
            checked=what,
            expected=f"at most {MAX_LINE_BYTES} bytes",
            found=f"{len(line)} bytes",
            next_action="leave the oversized value out of the source or the mapping",
        )
    require_bounded(line, what)


def _object(operation: PlannedOperation) -> str:
    """Kind and identity of an operation; an identity is what a reviewer reads, and holds no secret."""
    return f"{operation.action} {operation.kind} {shown(canonical_json_bytes(operation.identity).decode())}"


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ManifestInvalidError(
            checked="created_at", expected="a time with a zone", found="a time without one", next_action="add the zone"
        )
    return moment.astimezone(UTC)


def _ordered_snapshots(records: Sequence[SourceSnapshotRecord]) -> list[SourceSnapshotRecord]:
    for record in records:
        if not record.path.startswith(f"{SOURCE_SIDE}/"):
            raise SnapshotValueError(
                checked=f"the snapshot {shown(record.path)}",
                expected=f"a snapshot of the source side, in {SOURCE_SIDE}/",
                found="another place",
                next_action="record only source snapshots in a plan",
            )
    return sorted(records, key=lambda record: record.path)


def _optional(name: str, value: Any) -> dict[str, Any]:
    return {} if value is None else {name: value}


def _further_keys(extra: Mapping[str, Any]) -> dict[str, Any]:
    taken = sorted(name for name in extra if name in _OWN_KEYS)
    if taken:
        why = (
            "; the registry's keys are another program's" if set(taken) & {*REGISTRY_KEYS, "schema_fingerprint"} else ""
        )
        raise ManifestInvalidError(
            checked=f"the further manifest keys {', '.join(taken)}",
            expected=f"names that the format does not use{why}",
            found="names of the format",
            next_action="choose other names",
        )
    return {name: canonical_value(value, kind="manifest", field=str(name)) for name, value in extra.items()}


def _create_plan_directory(run_dir: Path) -> None:
    plan = run_dir / PLAN_DIRECTORY
    with write_failures_of(plan):
        try:
            # Creating it decides between two planners of one run; a torn plan stays as it is, for a person to see.
            plan.mkdir()
        except FileExistsError:
            raise already_written(plan) from None
        sync_directory(run_dir)


def _write_coverage(run_dir: Path, lines: Iterable[bytes], stated: Mapping[str, int] | None) -> dict[str, Any]:
    digest = hashlib.sha256()
    counter = ActionCounter()

    def counted() -> Iterator[bytes]:
        for number, line in enumerate(lines, start=1):
            _require_readable(line, f"{COVERAGE_FILE} line {number}")
            digest.update(line)
            counter.add(line)
            yield line

    write_durably(run_dir / COVERAGE_FILE, counted(), replace=False)
    counts = counter.counts()
    if counts is None or dict(stated or {}) != counts:
        raise ManifestInvalidError(
            checked=f"the counts of {COVERAGE_FILE}",
            expected="the number of lines with each of the five actions",
            found="other numbers, or a line without one of the five actions",
            next_action="report this as a defect of the plan maker",
        )
    return {"digest": digest.hexdigest(), "counts": counts}
