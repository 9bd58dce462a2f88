"""Reading a plan artifact: each file once, then the verdict, then the operations (A81, A84, P100 to P108).

The order of use at apply is fixed: :func:`require_plan_directory`, :func:`read_raw_artifact`, then
:func:`ledger.plan.verify.verify_plan` of those bytes, then :func:`parse_artifact` of the same bytes, then
:func:`require_applicable`. Nothing after the read opens the files again, so what was verified is what is parsed (G1):
small files are held in memory, large ones in a private copy (:mod:`ledger.plan.private_copy`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.plan.checksum import artifact_digest
from ledger.plan.errors import (
    ManifestInvalidError,
    PlanArtifactAbsentError,
    PlanFormatApplyUnsupportedError,
    TornPlanArtifactError,
)
from ledger.plan.files import confined, read_regular, unreadable
from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, OPERATIONS_FILE, PLAN_DIRECTORY, REPLAN
from ledger.plan.manifest import MAX_MANIFEST_BYTES, decode_manifest, parse_manifest
from ledger.plan.model import APPLICABLE_FORMATS, PlanManifest, PlannedOperation
from ledger.plan.operations import parse_operations
from ledger.plan.private_copy import PrivateCopy, private_copy


@dataclass(frozen=True, slots=True)
class RawPlanArtifact:
    """The bytes of an artifact as they were read, once.

    A file that is not there has empty bytes here and its name in ``missing``: that is a verdict for the verification
    and for the parser, not for the reading. ``coverage`` is None where there is no coverage.
    """

    run_dir: Path
    manifest_bytes: bytes
    operations: PrivateCopy = field(repr=False)
    coverage: PrivateCopy | None = field(default=None, repr=False)
    missing: frozenset[str] = frozenset()

    @property
    def artifact_digest(self) -> str:
        """Lower-case sha256 over the raw manifest, then the raw operations: what a commit names."""
        return artifact_digest(self.manifest_bytes, self.operations)

    @property
    def operations_bytes(self) -> bytes:
        """All bytes of the operations at once; of a large plan that is a lot of memory."""
        return self.operations.read()

    @property
    def coverage_lines(self) -> Collection[bytes] | None:
        """The lines of the coverage with their newlines, read as they are asked for; None if there is none."""
        return None if self.coverage is None else self.coverage.lines()

    @property
    def coverage_bytes(self) -> bytes | None:
        """All bytes of the coverage at once, None if there is none; of a large plan that is a lot of memory."""
        return None if self.coverage is None else self.coverage.read()


@dataclass(frozen=True, slots=True)
class PlanArtifact:
    """A parsed artifact.

    ``operations`` and ``lines`` (the exact bytes of each operation with its newline) are in stored order, and are made
    from the raw bytes as they are asked for.
    """

    manifest: PlanManifest
    manifest_document: dict[str, Any]
    operations: Sequence[PlannedOperation]
    lines: Sequence[bytes] = field(repr=False)
    raw: RawPlanArtifact = field(repr=False)


def require_plan_directory(run_dir: Path) -> None:
    """Refuse a run that has no ``plan/`` before anything of it is interpreted (P101).

    Raises:
        PlanArtifactAbsentError: there is no such directory; the three possible causes are named (A7, C34).
        PlanArtifactUnreadableError: something else is there, or it cannot be looked at (A12).
    """
    path = run_dir / PLAN_DIRECTORY
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise unreadable(path, "a symbolic link to nothing") from None
        raise _absent(run_dir) from None
    except OSError as exc:
        raise unreadable(path, exc.strerror or type(exc).__name__) from exc
    if not stat.S_ISDIR(mode):
        raise unreadable(path, "something that is not a directory")


def _absent(run_dir: Path) -> PlanArtifactAbsentError:
    return PlanArtifactAbsentError(
        checked=f"the run {run_dir.name}",
        expected=f"a directory {PLAN_DIRECTORY}/ with a saved plan",
        found="none: the run was written in the older plan.parquet row format, its plan was never written, "
        "or it was removed since",
        next_action=REPLAN,
    )


def read_raw_artifact(run_dir: Path) -> RawPlanArtifact:
    """Read the files of an artifact, each once; nothing is interpreted.

    Raises:
        PlanArtifactAbsentError: there is no ``plan/``.
        PlanArtifactUnreadableError: a file is there and cannot be read as a regular file.
        PathOutsideRunError: a file is a symbolic link that leads out of the run directory.
        PlanCopyFailedError: a large file could not be copied into the folder for temporary files.
    """
    require_plan_directory(run_dir)
    manifest = read_regular(confined(run_dir, MANIFEST_FILE), at_most=MAX_MANIFEST_BYTES)
    operations = private_copy(confined(run_dir, OPERATIONS_FILE))
    coverage = private_copy(confined(run_dir, COVERAGE_FILE))
    found = {MANIFEST_FILE: manifest, OPERATIONS_FILE: operations}
    return RawPlanArtifact(
        run_dir=run_dir,
        manifest_bytes=manifest or b"",
        operations=PrivateCopy() if operations is None else operations,
        coverage=coverage,
        missing=frozenset(name for name, data in found.items() if data is None),
    )


def parse_artifact(raw: RawPlanArtifact) -> PlanArtifact:
    """Interpret bytes that were read (and, before an apply, verified).

    Raises:
        TornPlanArtifactError: not one complete, well-formed plan; ``findings`` names every faulty line and why.
        UnrecognisedPlanFormatError: a format version that is not known.
        UnsupportedOperationActionError: an operation with another action than create, update, delete (P105).
    """
    document = decode_manifest(None if MANIFEST_FILE in raw.missing else raw.manifest_bytes)
    try:
        manifest = parse_manifest(document)
    except ManifestInvalidError as exc:
        raise TornPlanArtifactError(
            checked=exc.checked,
            expected=exc.expected,
            found=exc.found,
            next_action=exc.next_action,
            faults=exc.findings,
        ) from exc
    require_complete_operations(raw, manifest.operations_count)
    operations, lines = parse_operations(raw.operations, format_version=manifest.format_version)
    return PlanArtifact(manifest=manifest, manifest_document=document, operations=operations, lines=lines, raw=raw)


def require_complete_operations(raw: RawPlanArtifact, recorded: int) -> None:
    """Compare the number of lines with the number that the manifest recorded.

    Raises:
        TornPlanArtifactError: the file is not there (A9), or has another number of lines (A10, C23).
    """
    lines = raw.operations.line_count
    if OPERATIONS_FILE not in raw.missing and lines == recorded:
        return
    raise TornPlanArtifactError(
        checked=OPERATIONS_FILE,
        expected=f"{recorded} lines, as the manifest counts",
        found="no such file" if OPERATIONS_FILE in raw.missing else f"{lines} lines",
        next_action=REPLAN,
    )


def load_plan_artifact(run_dir: Path) -> PlanArtifact:
    """Read and parse a saved plan; for an apply, verification is between the two (P117).

    Raises:
        PlanArtifactError: as :func:`read_raw_artifact` and :func:`parse_artifact`.
    """
    return parse_artifact(read_raw_artifact(run_dir))


def require_applicable(artifact: PlanArtifact) -> None:
    """Refuse a plan that can be read but not applied; called after the parse and before anything is sent (P107).

    Raises:
        PlanFormatApplyUnsupportedError: format 2, whose updates carry no id of the destination (P108).
    """
    version = artifact.manifest.format_version
    if version in APPLICABLE_FORMATS:
        return
    raise PlanFormatApplyUnsupportedError(
        checked=f"whether run {artifact.manifest.run_id} can be applied",
        expected=f"plan format {' or '.join(str(known) for known in sorted(APPLICABLE_FORMATS))}",
        found=f"format {version}, whose updates do not record which object they mean; it can still be reviewed",
        next_action=REPLAN,
    )
