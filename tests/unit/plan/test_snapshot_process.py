"""Snapshots are read by another process: what it says, what its end means, and what it may take and see."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger.plan.snapshot_process import SnapshotReading, read_apart, read_here
from ledger.shortage import MachineShortageError
from tests.support.plans import GOLDEN

TOO_LARGE = "a table that cannot be read with 2,048 MiB of memory in 300 seconds"
TAGS = GOLDEN / "every-shape" / "A" / "BuiltinTag.parquet"


def bomb(path: Path) -> Path:
    """512 bytes that become eight GiB: a thousand rows of one text of 8 MiB, which the file holds once."""
    text = pa.array(["x" * (8 * 1024 * 1024)])
    rows = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), text)
    pq.write_table(
        pa.table({"a": rows}),
        path,
        compression="zstd",
        dictionary_pagesize_limit=64 * 1024 * 1024,
        store_schema=False,
        write_statistics=False,
    )
    return path


@pytest.mark.rules("A74", "A76")
def test_readings_come_in_the_order_of_the_paths(tmp_path: Path) -> None:
    (tmp_path / "torn").write_bytes(TAGS.read_bytes()[:100])
    paths = [TAGS, tmp_path / "torn", tmp_path / "gone", TAGS]
    good, torn, gone, again = read_apart(paths)
    assert good == again == read_here(TAGS)
    assert (good.rows, good.problem) == (3, "")
    assert torn == SnapshotReading(problem="bytes that are not a Parquet table (ArrowInvalid)")
    assert (gone.problem, gone.unreadable) == ("nothing", True)
    assert read_apart([]) == []


@pytest.mark.rules("A76", "A92")
def test_a_table_that_needs_too_much_memory_is_a_problem_of_that_table(tmp_path: Path) -> None:
    assert bomb(tmp_path / "bomb").stat().st_size < 2_000
    big, good = read_apart([tmp_path / "bomb", TAGS])
    assert big.problem == TOO_LARGE
    assert good.rows == 3


@pytest.mark.rules("A76", "A92")
def test_what_the_process_does_not_survive_is_a_verdict_and_the_rest_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = tmp_path / "python"
    # Says what it read of the first, and dies of the second.
    dying.write_text('#!/bin/sh\necho begun\necho \'{"digest": "d", "rows": 1}\'\nkill -SEGV $$\n', encoding="utf-8")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    first, second, third = read_apart([TAGS, TAGS, TAGS])
    assert first == SnapshotReading("d", 1)
    assert second.problem == TOO_LARGE
    assert "another snapshot" in third.problem


def test_a_process_that_cannot_begin_is_no_verdict_about_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    with pytest.raises(MachineShortageError, match="No such file"):
        read_apart([TAGS])
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(MachineShortageError, match="before it had begun"):
        read_apart([TAGS])


@pytest.mark.rules("G12")
def test_g12_the_process_sees_no_credential_and_imports_nothing_from_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported from the working folder')", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INFRAHUB_API_TOKEN", "canary")
    assert read_apart([TAGS])[0].rows == 3
    spy = tmp_path / "spy"
    spy.write_text(f"#!/bin/sh\nenv > {tmp_path}/seen\necho begun\n", encoding="utf-8")
    spy.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(spy))
    read_apart([TAGS])
    assert "canary" not in (tmp_path / "seen").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pa.table({"a": pa.nulls(20_000_001, pa.int8())}), "the claim of 20,000,001 rows, and 20,000,000 are the most"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), "several columns of one name"),
        (pa.table({"a": pa.array([2**62], pa.timestamp("us"))}), "columns that cannot be read (OverflowError)"),
    ],
    ids=["rows", "names", "times"],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, table: pa.Table, says: str) -> None:
    pq.write_table(table, tmp_path / "x.parquet")
    assert read_here(tmp_path / "x.parquet") == SnapshotReading(problem=says)


def test_the_limits_hold_for_the_reading_process_alone() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CPU)
    read_apart([TAGS])
    assert (resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_CPU)) == before
