"""The folders of syncs and runs."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from ledger.errors import ConfigurationError
from ledger.exit_codes import ExitCode
from producers.errors import RunDirectoryError, SyncBusyError
from producers.run_directory import (
    DEFAULT_ROOT,
    RunRecord,
    cache_root,
    create_run_directory,
    finish_run,
    locked,
    new_run_id,
    read_run_record,
    write_run_record,
)

NOON = datetime(2026, 7, 26, 18, 4, 30, tzinfo=UTC)


@pytest.mark.rules("C1", "C9")
def test_root_is_the_variable_or_the_default() -> None:
    assert cache_root({}) == DEFAULT_ROOT == Path(".infrahub-sync-cache")
    assert cache_root({"INFRAHUB_SYNC_CACHE_DIR": ""}) == DEFAULT_ROOT
    assert cache_root({"INFRAHUB_SYNC_CACHE_DIR": "/shared/cache"}) == Path("/shared/cache")
    assert cache_root({"INFRAHUB_SYNC_CACHE_DIR": "~/cache"}) == Path.home() / "cache"
    with pytest.raises(ConfigurationError):
        cache_root({"INFRAHUB_SYNC_CACHE_DIR": "cache/../elsewhere"})


def test_run_ids_are_in_utc_and_differ() -> None:
    east = NOON.astimezone(timezone(timedelta(hours=2)))
    ids = {new_run_id(east) for _ in range(50)}
    assert len(ids) == 50
    assert all(re.fullmatch(r"20260726T1804-[0-9a-f]{8}", run_id) for run_id in ids)


@pytest.mark.rules("C2")
def test_one_run_of_a_sync_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path / "sync"), pytest.raises(SyncBusyError) as caught, locked(tmp_path / "sync"):
        pass
    assert caught.value.exit_code is ExitCode.BUSY
    with locked(tmp_path / "sync"), locked(tmp_path / "another"):
        assert (tmp_path / "sync" / ".lock").exists()


def test_a_run_directory_is_new_or_refused(tmp_path: Path) -> None:
    assert create_run_directory(tmp_path, NOON).is_dir()
    with pytest.raises(RunDirectoryError):
        create_run_directory(tmp_path / "missing", NOON)


@pytest.mark.rules("C8")
def test_run_record_is_completed_after_the_apply(tmp_path: Path) -> None:
    write_run_record(tmp_path, RunRecord(status="planned", configuration="/c.yml", ledger_position=7))
    finish_run(tmp_path, status="applied", summary={"applied": 3}, finished_at=NOON)
    record = read_run_record(tmp_path)
    assert (record.status, record.mode, record.summary, record.ledger_position) == (
        "applied",
        "full",
        {"applied": 3},
        7,
    )
    assert record.finished_at == "2026-07-26T18:04:30+00:00"


@pytest.mark.parametrize("data", [None, b"{", b"{}", b'{"status": 5}'])
def test_g11_a_damaged_run_record_is_refused(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "run.json").write_bytes(data)
    with pytest.raises(RunDirectoryError):
        read_run_record(tmp_path)


@pytest.mark.rules("G11")
@pytest.mark.timeout(30)
def test_g11_a_run_record_that_is_no_file_of_a_sensible_size_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    os.mkfifo(path)
    with pytest.raises(RunDirectoryError, match="regular file"):
        read_run_record(tmp_path)
    path.unlink()
    with path.open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    with pytest.raises(RunDirectoryError, match="more than"):
        read_run_record(tmp_path)
    path.write_bytes(b'{"status": ' + b"[" * 100_000)
    with pytest.raises(RunDirectoryError, match="1 faults"):
        read_run_record(tmp_path)
