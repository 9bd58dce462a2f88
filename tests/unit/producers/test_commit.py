"""The commit of a plan carries its checksum and a freshly computed configuration version, never the operations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger.binding import DestinationBinding
from ledger.commit import Policy, commit_id
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.checksum import plan_checksum
from ledger.plan.errors import ManifestInvalidError, PlanArtifactAbsentError
from ledger.plan.reader import read_raw_artifact
from producers.commit import build_commit
from producers.config import load_configuration
from producers.errors import ConfigurationChangedError, RunDirectoryError, UnexpectedChecksumError
from producers.planning import PlannedRun
from tests.support.fake_reader import FakeDestination
from tests.support.planning import CLOCK, entry, mapped, plan, small

TAGS = entry("BuiltinTag", "tags", ["name"], mapped("name"))


async def _planned(folder: Path) -> PlannedRun:
    loaded = small(folder, {"tags": [{"id": 1, "name": "t"}]}, [TAGS])
    overridden = load_configuration(loaded.path, source_settings={"directory": str(folder / "rows")})
    return await plan(overridden, FakeDestination(), folder, ledger_position=41)


async def test_commit_names_the_run_by_checksum_digest_and_location(tmp_path: Path) -> None:
    run = await _planned(tmp_path)
    commit = build_commit(run.run_dir, actor="alice", reason="because", policy=Policy(), clock=CLOCK)
    assert commit.commit_id == commit_id(run.run_id, run.manifest.plan_checksum)
    assert commit.artifact_digest == read_raw_artifact(run.run_dir).artifact_digest
    assert commit.artifact == f"small/{run.run_id}"
    assert (commit.source, commit.operations_count, commit.ledger_position) == ("small", 1, 41)
    assert commit.binding == DestinationBinding(url="http://infrahub.example:8000", branch="main")
    assert b"BuiltinTag" not in commit.canonical_bytes()


@pytest.mark.rules("A60", "A71", "C22")
async def test_configuration_version_is_recomputed_with_the_recorded_overrides(tmp_path: Path) -> None:
    run = await _planned(tmp_path)
    commit = build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK)
    assert commit.config_version == run.manifest.config_version
    path = tmp_path / "small.yml"
    path.write_text(path.read_text().replace("infrahub.example", "elsewhere.example"))
    with pytest.raises(ConfigurationChangedError) as caught:
        build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK)
    assert run.manifest.config_version in caught.value.expected


async def test_g01_a_plan_that_is_not_the_reviewed_one_is_refused(tmp_path: Path) -> None:
    run = await _planned(tmp_path)
    reviewed = run.manifest.plan_checksum
    assert (
        build_commit(
            run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK, expected_checksum=reviewed
        ).plan_checksum
        == reviewed
    )
    with pytest.raises(UnexpectedChecksumError) as caught:
        build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK, expected_checksum="0" * 64)
    assert caught.value.exit_code is ExitCode.STALE


async def test_another_destination_can_be_named_for_the_gate_to_compare(tmp_path: Path) -> None:
    run = await _planned(tmp_path)
    elsewhere = DestinationBinding(url="http://elsewhere.example", branch="main")
    commit = build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK, binding=elsewhere)
    assert commit.binding == elsewhere
    assert commit.ledger_position is None, "it is a position in the log of the planned destination"
    spelled = DestinationBinding(url="HTTP://Infrahub.Example:8000/", branch="main")
    same = build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK, binding=spelled)
    assert same.ledger_position == 41


@pytest.mark.rules("G11")
@pytest.mark.parametrize("position", [-1, 2**63, 10**30, True, "41", 4.5])
async def test_a_record_with_an_impossible_ledger_position_is_refused(tmp_path: Path, position: object) -> None:
    run = await _planned(tmp_path)
    record = json.loads((run.run_dir / "run.json").read_bytes())
    (run.run_dir / "run.json").write_text(json.dumps({**record, "ledger_position": position}))
    with pytest.raises(RunDirectoryError):
        build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK)


@pytest.mark.rules("G11")
async def test_what_a_commit_cannot_carry_is_refused_by_field_and_never_by_value(tmp_path: Path) -> None:
    """A plan made elsewhere may have a source of any name."""
    run = await _planned(tmp_path)
    path = run.run_dir / "plan" / "manifest.json"
    document = {**json.loads(path.read_bytes()), "source": "planted % name"}
    document["plan_checksum"] = plan_checksum(document, (run.run_dir / "plan" / "operations.jsonl").read_bytes())
    path.write_bytes(canonical_json_bytes(document))
    with pytest.raises(ManifestInvalidError) as caught:
        build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK)
    assert "source" in caught.value.found
    assert "planted" not in str(caught.value)


@pytest.mark.rules("A1", "C34")
async def test_runs_without_plan_or_record_are_refused(tmp_path: Path) -> None:
    run = await _planned(tmp_path)
    (run.run_dir / "run.json").unlink()
    with pytest.raises(RunDirectoryError):
        build_commit(run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK)
    with pytest.raises(ConfigurationChangedError):
        # named by hand, but without the override that the plan was made with
        build_commit(
            run.run_dir, actor="a", reason="", policy=Policy(), clock=CLOCK, configuration=tmp_path / "small.yml"
        )
    empty = tmp_path / "small" / "20260101T0000-00000000"
    empty.mkdir()
    with pytest.raises(PlanArtifactAbsentError):
        build_commit(empty, actor="a", reason="", policy=Policy(), clock=CLOCK)
