"""The folder of a sync and the folders of its runs (C1 to C9).

``<root>/<sync-name>/<run_id>/`` with the root ``.infrahub-sync-cache`` or ``INFRAHUB_SYNC_CACHE_DIR``. A run id is
``YYYYMMDDTHHMM-<8 hexadecimal digits>`` in UTC.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, ValidationError

from ledger.commit import LedgerPosition
from ledger.errors import ConfigurationError
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.errors import PlanArtifactUnreadableError
from ledger.plan.files import read_regular, write_durably
from producers.errors import RunDirectoryError, SyncBusyError

CACHE_VARIABLE = "INFRAHUB_SYNC_CACHE_DIR"
DEFAULT_ROOT = Path(".infrahub-sync-cache")
LOCK_FILE = ".lock"
ROWCOUNTS_FILE = "last-successful-rowcounts.json"
RUN_FILE = "run.json"
_MAX_RECORD_BYTES = 16 * 1024 * 1024


class EndpointRows(BaseModel):
    """How many rows an endpoint of the source had, and how many of them the filters of all its entries left out."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    read: int
    left_out: int


class RunRecord(BaseModel):
    """``run.json``: what is true of one run and may differ between two equal plans (C8).

    ``summary`` holds the five counts of the plan until the run was applied, then the six keys of its run summary.
    ``source_location`` is where the source read, as it tells itself, and ``source_settings`` are overrides; neither
    holds a credential. ``filtered_rows`` counts, for each mapping entry, the rows that its filters left out, and
    ``source_rows``, for each endpoint, all rows and those that no entry selected. ``warnings`` are those of the plan.
    """

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    status: str
    mode: str = "full"
    summary: dict[str, Any] = {}
    finished_at: str | None = None
    configuration: str | None = None
    source_settings: dict[str, str] = {}
    source_location: str | None = None
    ledger_position: LedgerPosition | None = None
    filtered_rows: dict[str, int] = {}
    source_rows: dict[str, EndpointRows] = {}
    warnings: list[str] = []


def cache_root(environ: Mapping[str, str]) -> Path:
    """The root of all artifacts (C9).

    Raises:
        ConfigurationError: the variable's path leads upwards, so that it means another place from each folder.
    """
    value = environ.get(CACHE_VARIABLE)
    if not value:
        return DEFAULT_ROOT
    path = Path(os.path.expandvars(value)).expanduser()
    if ".." in path.parts:
        raise ConfigurationError(
            checked=CACHE_VARIABLE,
            expected="a path without '..'",
            found=str(path),
            next_action="give the folder by its full path",
        )
    return path


def new_run_id(now: datetime) -> str:
    """A fresh run id."""
    return f"{now.astimezone(UTC):%Y%m%dT%H%M}-{secrets.token_hex(4)}"


@contextmanager
def locked(sync_directory: Path) -> Iterator[None]:
    """Hold the sync's lock for the length of a run; the folder is made when it is not there (C2).

    Raises:
        SyncBusyError: another process holds it.
        RunDirectoryError: the folder cannot be made or written.
    """
    try:
        sync_directory.mkdir(parents=True, exist_ok=True)
        lock = FileLock(sync_directory / LOCK_FILE, timeout=0)
        lock.acquire()
    except OSError as exc:
        if isinstance(exc, Timeout):
            raise _busy(sync_directory) from None
        raise RunDirectoryError(
            checked=f"the folder of all runs of this sync, {sync_directory}",
            expected="a folder that can be made and written",
            found=exc.strerror or type(exc).__name__,
            next_action=f"set {CACHE_VARIABLE} to a folder that you may write, or work in another one",
        ) from exc
    try:
        yield
    finally:
        lock.release()


def _busy(sync_directory: Path) -> SyncBusyError:
    return SyncBusyError(
        checked=f"the lock of {sync_directory.name}",
        expected="no other run of this sync",
        found=f"{sync_directory / LOCK_FILE} is held by another process",
        next_action="wait until that run has ended",
    )


def create_run_directory(sync_directory: Path, now: datetime) -> Path:
    """A new, empty run directory; an existing one is never taken.

    Raises:
        RunDirectoryError: the file system refuses it.
    """
    path = sync_directory / new_run_id(now)
    try:
        path.mkdir()
    except OSError as exc:
        raise RunDirectoryError(
            checked=f"the run directory {path}",
            expected="a new folder",
            found=exc.strerror or type(exc).__name__,
            next_action="check the folder's permissions and free space",
        ) from exc
    return path


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a small sidecar file in canonical JSON, durably."""
    write_durably(path, canonical_json_bytes(dict(document)) + b"\n")


def write_run_record(run_dir: Path, record: RunRecord) -> None:
    """Write ``run.json``."""
    write_json(run_dir / RUN_FILE, record.model_dump(mode="json"))


def read_run_record(run_dir: Path) -> RunRecord:
    """Read ``run.json``.

    Raises:
        RunDirectoryError: it is not there or not in this form.
    """
    path = run_dir / RUN_FILE
    try:
        data = read_regular(path, at_most=_MAX_RECORD_BYTES)
        if data is not None:
            return RunRecord.model_validate_json(data)
        found = "no such file"
    except PlanArtifactUnreadableError as exc:
        found = exc.found
    except ValidationError as exc:
        found = f"{exc.error_count()} faults in the file"
    raise RunDirectoryError(
        checked=str(path),
        expected="the record of a run made by this program",
        found=found,
        next_action="if this run directory is damaged, make a new plan",
    )


def finish_run(run_dir: Path, *, status: str, summary: Mapping[str, Any], finished_at: datetime) -> None:
    """Complete ``run.json`` after an apply, from the run's projection (P122)."""
    record = read_run_record(run_dir)
    changes = {"status": status, "summary": dict(summary), "finished_at": finished_at.astimezone(UTC).isoformat()}
    write_run_record(run_dir, record.model_copy(update=changes))


def write_rowcounts(sync_directory: Path, rows: Mapping[str, int]) -> None:
    """Keep the row counts of an applied plan as the next plan's baseline (C3, C50)."""
    write_json(sync_directory / ROWCOUNTS_FILE, rows)


def read_rowcounts(sync_directory: Path) -> dict[str, int] | None:
    """The baseline, or None where no plan of this sync was applied from here.

    Raises:
        RunDirectoryError: the file is there and cannot be used; guessing would switch the guard off.
    """
    path = sync_directory / ROWCOUNTS_FILE
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise _bad_rowcounts(path, type(exc).__name__) from exc
    if not isinstance(document, dict) or not all(type(count) is int for count in document.values()):
        raise _bad_rowcounts(path, "another shape")
    return document


def _bad_rowcounts(path: Path, found: str) -> RunDirectoryError:
    return RunDirectoryError(
        checked=str(path),
        expected="row counts by kind",
        found=found,
        next_action="remove the file, or plan with --allow-rowcount-drop",
    )
