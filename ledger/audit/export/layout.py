"""Where things are in an export, and the manifest that lists them."""

from __future__ import annotations

import hashlib
import os
import re
import stat
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
PLAN_FILES = (PLAN_BODY, PLAN_OPERATIONS, PLAN_COVERAGE, "plan.parquet")
FORMAT, VERSION = "apply-ledger-export", 1
EVENTS_IN_A_GROUP = 50_000
"""Events in a row group of the Parquet file, unless told otherwise."""

_CHUNK = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}")
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
    """Every file of an export but its manifest, by name; what is no file, or is a link, is none."""
    return [path for path, regular in entries_below(root) if regular and path != root / MANIFEST]


def entries_below(root: Path) -> list[tuple[Path, bool]]:
    """Whatever stands below a folder and is no folder, by name, and whether it is a regular file; no link is followed.

    Raises:
        ExportUnreadableError: a folder cannot be read.
    """
    found: list[tuple[Path, bool]] = []
    folders = [root]
    try:
        while folders:
            for entry in os.scandir(folders.pop()):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                else:
                    found.append((Path(entry.path), entry.is_file(follow_symlinks=False)))
    except OSError as exc:
        raise unreadable_export(root, "folders that can be read", exc.strerror or type(exc).__name__) from exc
    return sorted(found)


def regular_file(root: Path, *parts: str) -> Path | None:
    """A file of an export; None where there is none, or something else, or a link on the way to it.

    An export comes from somebody else: a link leads out of it, and a pipe would never end.

    Args:
        root: the folder of the export.
        parts: names below it; a digest that stands in a file becomes one by :func:`digest_name` alone.
    """
    path = root
    for number, part in enumerate(parts, 1):
        path /= part
        try:
            mode = path.lstat().st_mode
        except (OSError, ValueError):
            return None
        if not (stat.S_ISREG(mode) if number == len(parts) else stat.S_ISDIR(mode)):
            return None
    return path


def digest_name(text: str) -> str:
    """A digest out of a file as the name of a file or folder; a name that no export has, where it is no digest."""
    return text if _DIGEST.fullmatch(text) else "none"


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
    path = regular_file(root, MANIFEST)
    if path is None:
        raise unreadable_export(root, "a readable manifest.json", "no such file")
    try:
        with path.open("rb") as file:
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
