"""A short answer of a source is no mass removal."""

from __future__ import annotations

from pathlib import Path

import pytest

from producers.errors import PlanRefusedError, RunDirectoryError
from producers.guards import require_no_rowcount_drop, rowcounts_of_snapshots
from producers.run_directory import ROWCOUNTS_FILE, read_rowcounts, write_rowcounts
from tests.support.fake_reader import FakeDestination
from tests.support.planning import Rows, entry, mapped, plan, small

TAGS = entry("BuiltinTag", "tags", ["name"], mapped("name"))


def _rows(count: int) -> Rows:
    return {"tags": [{"id": n, "name": f"t{n}"} for n in range(count)]}


@pytest.mark.rules("C55", "G11")
@pytest.mark.parametrize(
    ("now", "before", "blocked"),
    [(0, 1, True), (4, 10, True), (5, 10, False), (7, 14, False), (6, 14, True), (0, 0, False)],
)
def test_ff02_less_than_half_blocks(now: int, before: int, blocked: bool) -> None:
    if blocked:
        with pytest.raises(PlanRefusedError, match="--allow-rowcount-drop"):
            require_no_rowcount_drop({"BuiltinTag": now}, {"BuiltinTag": before})
    else:
        require_no_rowcount_drop({"BuiltinTag": now}, {"BuiltinTag": before})


def test_every_kind_that_dropped_is_named_and_unmapped_ones_are_not() -> None:
    with pytest.raises(PlanRefusedError) as caught:
        require_no_rowcount_drop({"A": 1, "B": 9, "C": 2}, {"A": 10, "B": 10, "C": 10, "D": 10})
    assert [finding.checked for finding in caught.value.findings] == ["the rows of A", "the rows of C"]
    require_no_rowcount_drop({"A": 1}, None)


def test_a_kind_that_somebody_named_may_drop_and_the_others_may_not() -> None:
    rows, before = {"A": 1, "B": 1}, {"A": 10, "B": 10}
    with pytest.raises(PlanRefusedError) as caught:
        require_no_rowcount_drop(rows, before, allowed={"A"})
    assert [finding.checked for finding in caught.value.findings] == ["the rows of B"]
    require_no_rowcount_drop(rows, before, allowed={"A", "B"})


def test_g11_a_drop_has_one_next_action() -> None:
    with pytest.raises(PlanRefusedError) as caught:
        require_no_rowcount_drop({"A": 1}, {"A": 10})
    assert {finding.next_action for finding in caught.value.findings} == {caught.value.next_action}
    assert "--allow-rowcount-drop-of KIND" in caught.value.next_action


@pytest.mark.rules("C3", "C55", "A61")
async def test_ff02_the_manifest_of_the_last_plan_is_the_baseline_of_the_next(tmp_path: Path) -> None:
    first = await plan(small(tmp_path, _rows(10), [TAGS]), FakeDestination(), tmp_path)
    baseline = rowcounts_of_snapshots(first.manifest.source_snapshot)
    assert baseline == {"BuiltinTag": 10}
    dropped = small(tmp_path, _rows(4), [TAGS])
    with pytest.raises(PlanRefusedError) as caught:
        await plan(dropped, FakeDestination(), tmp_path, baseline=baseline)
    assert [finding.name for finding in caught.value.findings] == ["RowCountDropError"]
    assert len(list(tmp_path.glob("small/*/plan"))) == 1
    allowed = await plan(dropped, FakeDestination(), tmp_path, baseline=baseline, allow_rowcount_drop=True)
    assert allowed.counts["create"] == 4


@pytest.mark.rules("C3", "C50")
async def test_without_a_ledger_the_file_of_the_last_apply_is_the_baseline(tmp_path: Path) -> None:
    write = tmp_path / "small"
    write.mkdir()
    write_rowcounts(write, {"BuiltinTag": 10})
    assert read_rowcounts(write) == {"BuiltinTag": 10}
    loaded = small(tmp_path, _rows(4), [TAGS])
    with pytest.raises(PlanRefusedError):
        await plan(loaded, FakeDestination(), tmp_path)
    # what the ledger says is newer than the file
    assert (await plan(loaded, FakeDestination(), tmp_path, baseline={"BuiltinTag": 4})).counts["create"] == 4


@pytest.mark.parametrize("data", [b"{", b"[1]", b'{"A": "10"}', b'{"A": true}'])
def test_g11_a_damaged_baseline_does_not_switch_the_guard_off(tmp_path: Path, data: bytes) -> None:
    assert read_rowcounts(tmp_path) is None
    (tmp_path / ROWCOUNTS_FILE).write_bytes(data)
    with pytest.raises(RunDirectoryError):
        read_rowcounts(tmp_path)
