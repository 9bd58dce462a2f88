"""A run that is not found: what may have been meant, and what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.cli.run_lookup import NEWEST, RunNotFoundError, find_run_directory, plan_command
from ledger.exit_codes import ExitCode

KNOWN = [f"20261130T15{minute:02}-{minute:08x}" for minute in range(8)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for run_id in KNOWN:
        (tmp_path / "tags" / run_id / "plan").mkdir(parents=True)
    (tmp_path / "tags" / "20261130T1700-ffffffff").mkdir()  # a run that never got a plan
    return tmp_path


def test_a_whole_run_id_is_enough_where_one_sync_has_it(root: Path) -> None:
    assert find_run_directory(root, KNOWN[0]) == find_run_directory(root, f"tags/{KNOWN[0]}")
    (root / "other" / KNOWN[0] / "plan").mkdir(parents=True)
    with pytest.raises(RunNotFoundError) as refused:
        find_run_directory(root, KNOWN[0])
    assert refused.value.found == f"other/{KNOWN[0]}, tags/{KNOWN[0]}"


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (KNOWN[3][:-1] + "x", KNOWN[3]),
        (f"tags/{KNOWN[3][:-1]}x", f"tags/{KNOWN[3]}"),
        ("20261130T1503", KNOWN[3]),  # a part is no name; it is told whose it is
    ],
)
def test_g11_a_run_that_is_not_there_is_refused_with_the_one_that_was_meant(root: Path, name: str, meant: str) -> None:
    with pytest.raises(RunNotFoundError) as refused:
        find_run_directory(root, name)
    assert f"(did you mean {meant}?)" in refused.value.found
    assert refused.value.exit_code is ExitCode.ERROR


@pytest.mark.rules("G11")
def test_g11_without_a_near_one_the_newest_saved_plans_are_named(root: Path) -> None:
    with pytest.raises(RunNotFoundError) as refused:
        find_run_directory(root, "elsewhere/run-1")
    assert refused.value.found == "none"
    newest = ", ".join(f"tags/{run_id}" for run_id in reversed(KNOWN[-NEWEST:]))
    assert f"the newest saved plans there: {newest};" in refused.value.next_action
    with pytest.raises(RunNotFoundError) as refused:
        find_run_directory(root / "empty", "run-1")
    assert "nothing is planned there yet" in refused.value.next_action


def test_a_fresh_plan_is_made_of_the_same_file_and_settings(root: Path) -> None:
    assert plan_command(root, KNOWN[0]) == "apply-ledger plan --config-file FILE"
    assert plan_command(root, "no-such-run") == "apply-ledger plan --config-file FILE"
    record = '{"status": "planned", "configuration": "my tags.yml", "source_settings": {"directory": "day0"}}'
    (root / "tags" / KNOWN[0] / "run.json").write_text(record, encoding="utf-8")
    told = "apply-ledger plan --config-file 'my tags.yml' --source-setting directory=day0"
    assert plan_command(root, KNOWN[0]) == told
