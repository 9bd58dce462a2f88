"""Where things are in an export, and the manifest that lists them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger.audit.errors import ExportUnreadableError
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.files import write_durably
from ledger.plan.model import Sha256Hex

MANIFEST = "manifest.json"
EVENTS_TABLE = "events.parquet"
EVENTS_LINES = "events.ndjson"
RUNS_TABLE = "runs.parquet"
OPERATIONS_TABLE = "operations.parquet"
CHECKPOINT = "checkpoint.note"
PLANS = "plans"
DETAILS = "details"
PLAN_BODY, PLAN_OPERATIONS, PLAN_COVERAGE = "body.json", "operations.jsonl", "coverage.jsonl"
FORMAT, VERSION = "apply-ledger-export", 1
EVENTS_IN_A_GROUP = 50_000
"""Events in a row group of the Parquet file, unless told otherwise."""

_CHUNK = 1 << 20
_MAX_MANIFEST = 64 * 1024 * 1024


class ExportedFile(BaseModel):
    """One file of an export."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    path: str
    bytes: int = Field(ge=0)
    sha256: Sha256Hex


class ExportManifest(BaseModel):
    """What an export is of, and its files."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    format: Literal["apply-ledger-export"] = "apply-ledger-export"
    version: Literal[1] = 1
    program: str
    url: str
    branch: str
    exported_at: str
    events: int
    head_position: int
    head_hash: Sha256Hex
    events_in_a_row_group: int = Field(ge=1, le=1_000_000)
    plans: list[Sha256Hex]
    files: list[ExportedFile]


def file_record(root: Path, path: Path) -> ExportedFile:
    """Size and digest of a file of an export."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return ExportedFile(path=path.relative_to(root).as_posix(), bytes=size, sha256=digest.hexdigest())


def files_below(root: Path) -> Iterable[Path]:
    """Every file of an export but its manifest, by name."""
    return sorted(path for path in root.rglob("*") if path.is_file() and path != root / MANIFEST)


def size_below(root: Path) -> int:
    """Bytes of all files of an export, also while it is being written."""
    total = 0
    for path in root.rglob("*"):
        with suppress(FileNotFoundError):  # a file that was written beside its place is there now
            total += path.stat().st_size if path.is_file() else 0
    return total


def write_manifest(root: Path, manifest: ExportManifest) -> None:
    """The last file that is written: an export without it is none."""
    write_durably(root / MANIFEST, canonical_json_bytes(manifest.model_dump(mode="json")) + b"\n")


def read_manifest(root: Path) -> ExportManifest:
    """The manifest of an export.

    Raises:
        ExportUnreadableError: there is none, or it is of another format.
    """
    try:
        with (root / MANIFEST).open("rb") as file:
            data = file.read(_MAX_MANIFEST + 1)
        return ExportManifest.model_validate_json(data)
    except OSError as exc:
        raise unreadable_export(root, "a readable manifest.json", exc.strerror or type(exc).__name__) from exc
    except ValidationError as exc:
        faults = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors()[:3])
        raise unreadable_export(root, f"a manifest of {FORMAT} {VERSION}", faults) from None


def unreadable_export(root: Path, expected: str, found: str) -> ExportUnreadableError:
    """A part of an export cannot be read at all, so that nothing can be said about it."""
    return ExportUnreadableError(
        checked=f"the export in {root}",
        expected=expected,
        found=found,
        next_action="name a folder that `apply-ledger export` wrote to its end, or export again",
    )
