"""The gate before the first write: one attempt names everything that is wrong."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.plan.checksum import plan_checksum
from ledger.plan.errors import PlanArtifactUnreadableError, PlanVerificationError, RunIdInvalidError
from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.reader import read_raw_artifact
from ledger.plan.verify import GATED_CHECKS, VerificationFailure, verify_plan
from tests.support.plans import CONFIG_VERSION, RUN_ID, golden_copy, tags, write_plan, write_snapshot

COVERAGE = b'{"action":"none"}\n{"action":"skip"}\n'
COUNTS = {"create": 0, "update": 0, "remove": 0, "skip": 1, "none": 1}
SNAPSHOT = "A/BuiltinTag.parquet"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return write_plan(
        tmp_path, tags("a", "b"), coverage_lines=COVERAGE.splitlines(keepends=True), coverage_counts=COUNTS
    )[0]


def verify(run_dir: Path, **changes: Any) -> list[VerificationFailure]:
    arguments: dict[str, Any] = {"run_id": RUN_ID, "config_version": CONFIG_VERSION, **changes}
    return verify_plan(artifact=read_raw_artifact(run_dir), **arguments)


def names(failures: list[VerificationFailure]) -> list[str]:
    return [failure.name for failure in failures]


def edit(run_dir: Path, *, sign: bool = True, **changes: Any) -> None:
    """Change keys of the manifest; by default with a checksum that fits again."""
    document = json.loads((run_dir / MANIFEST_FILE).read_bytes()) | changes
    if sign:
        document["plan_checksum"] = plan_checksum(document, (run_dir / OPERATIONS_FILE).read_bytes())
    (run_dir / MANIFEST_FILE).write_bytes(json.dumps(document).encode())


@pytest.mark.rules("A82", "C52", "P103")
def test_an_untouched_plan_has_no_failures(run_dir: Path) -> None:
    assert verify(run_dir) == []


@pytest.mark.rules("A58", "C52")
def test_a_plan_copied_into_another_run_is_refused(run_dir: Path) -> None:
    (failure,) = verify(run_dir, run_id="20260727T0000-00000000")

    assert (failure.name, failure.expected, failure.found) == (
        "run_binding", "20260727T0000-00000000", f"'{RUN_ID}'",
    )  # fmt: skip


@pytest.mark.rules("A66", "C30", "C52", "G1")
@pytest.mark.parametrize("changes", [{"delete_operations_computed": False}, {"source": "other"}, {"note": "by hand"}])
def test_g01_a_manifest_edited_by_hand_is_refused(run_dir: Path, changes: dict[str, Any]) -> None:
    edit(run_dir, sign=False, **changes)

    assert names(verify(run_dir)) == ["plan_checksum"]


@pytest.mark.rules("A66", "C52", "G1")
def test_g01_an_operation_edited_by_hand_is_refused(run_dir: Path) -> None:
    path = run_dir / OPERATIONS_FILE
    path.write_bytes(path.read_bytes().replace(b'"name":"a"', b'"name":"z"'))

    (failure,) = verify(run_dir)
    assert failure.name == "plan_checksum"
    assert "changed after it was written" in failure.found


@pytest.mark.rules("A60", "A72", "C22", "C52")
@pytest.mark.parametrize("current", ["other", CONFIG_VERSION.upper(), f" {CONFIG_VERSION}", ""])
def test_another_configuration_version_is_refused(run_dir: Path, current: str) -> None:
    assert names(verify(run_dir, config_version=current)) == ["config_version"]


@pytest.mark.rules("A85")
def test_a_review_has_no_configuration_to_compare_with(run_dir: Path) -> None:
    assert verify(run_dir, config_version=None) == []


@pytest.mark.rules("P11", "P12", "C52")
def test_a_destination_without_planned_writes_is_named_and_directed_to_sync(run_dir: Path) -> None:
    (failure,) = verify(run_dir, write_surface_missing_on="NautobotAdapter")

    assert failure.name == "write_surface"
    assert "NautobotAdapter" in failure.found
    assert "sync" in failure.next_action


# --- the format is a gate -----------------------------------------------------------------------------------------


UNKNOWN_FORMATS = [
    None, b"", b"{}", b"[]", b"\xff", b'{"format_version":4}', b'{"format_version":"3"}', b'{"format_version":[3]}',
    b'{"format_version":true}',
]  # fmt: skip


@pytest.mark.rules("A86", "P117", "C21")
@pytest.mark.parametrize("manifest", UNKNOWN_FORMATS)
def test_an_unknown_format_says_that_nothing_else_was_evaluated(run_dir: Path, manifest: bytes | None) -> None:
    (run_dir / MANIFEST_FILE).unlink()
    if manifest is not None:
        (run_dir / MANIFEST_FILE).write_bytes(manifest)
    (run_dir / OPERATIONS_FILE).unlink()
    (run_dir / SNAPSHOT).unlink()

    (failure,) = verify(run_dir, config_version="other", run_id="another")
    assert failure.name == "format_version"
    assert "not evaluated" in failure.next_action
    assert all(check in failure.next_action for check in GATED_CHECKS)


@pytest.mark.rules("A86", "P11")
def test_the_write_surface_is_judged_even_behind_a_closed_gate(run_dir: Path) -> None:
    (run_dir / MANIFEST_FILE).unlink()

    assert names(verify(run_dir, write_surface_missing_on="X")) == ["format_version", "write_surface"]


@pytest.mark.rules("A87", "P118", "G11", "A83")
def test_g11_a_tear_and_every_other_failure_are_named_together(run_dir: Path) -> None:
    (run_dir / SNAPSHOT).unlink()
    path = run_dir / OPERATIONS_FILE
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    (run_dir / COVERAGE_FILE).unlink()
    edit(run_dir, sign=False, created_at="never")

    failures = verify(run_dir, run_id="another", config_version="other", write_surface_missing_on="X")
    assert names(failures) == [
        "run_binding", "manifest", "operations", "plan_checksum", "source_snapshot", "config_version", "coverage",
        "write_surface",
    ]  # fmt: skip
    for failure in failures:
        assert failure.run_id == "another"
        assert failure.expected
        assert failure.found
        assert failure.next_action
    group = PlanVerificationError(
        checked="the plan", findings=[failure.finding() for failure in failures], next_action="plan again"
    )
    assert all(name in str(group) for name in names(failures))


@pytest.mark.rules("A9", "P118", "A87")
def test_absent_operations_are_a_failure_beside_the_others(run_dir: Path) -> None:
    (run_dir / OPERATIONS_FILE).unlink()

    failures = verify(run_dir, config_version="other")
    assert names(failures) == ["operations", "config_version"]
    assert failures[0].found == "no such file"


@pytest.mark.rules("A87")
@pytest.mark.usefixtures("snapshots_read_here")
@pytest.mark.parametrize("value", [None, True, "3", [], {}, -1, 1.5, "x" * 100_000])
def test_no_value_of_a_manifest_field_stops_the_gate(run_dir: Path, value: Any) -> None:
    document = json.loads((run_dir / MANIFEST_FILE).read_bytes())
    for key in [key for key in document if key != "format_version" and document[key] is not value]:
        (run_dir / MANIFEST_FILE).write_bytes(json.dumps({**document, key: value}).encode())
        failures = verify(run_dir)
        # The time of writing is outside the checksum, yet it has to be one.
        assert failures, key
        assert all(len(failure.model_dump_json()) < 3000 for failure in failures)


@pytest.mark.rules("A65", "C28")
def test_a_plan_without_binding_or_source_or_coverage_passes(tmp_path: Path) -> None:
    assert verify(golden_copy("golden-one-create", tmp_path)) == []


# --- source snapshots ---------------------------------------------------------------------------------------------


def _corrupt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[: len(data) // 2] = bytes(len(data) // 2)
    path.write_bytes(bytes(data))


SNAPSHOT_DAMAGE: dict[str, Callable[[Path], Any]] = {
    "absent": lambda run: (run / SNAPSHOT).unlink(),
    "other rows": lambda run: write_snapshot(run, {"0": "other"}),
    "another row count": lambda run: write_snapshot(run, {"0": "prod", "1": "x"}),
    "no rows": lambda run: write_snapshot(run, {}),
    "another source id": lambda run: write_snapshot(run, {"1": "prod"}),
    "zero bytes": lambda run: (run / SNAPSHOT).write_bytes(b""),
    "no Parquet": lambda run: (run / SNAPSHOT).write_bytes(b"PAR1 something PAR1"),
    "half zeroed": lambda run: _corrupt(run / SNAPSHOT),
    "truncated": lambda run: (run / SNAPSHOT).write_bytes((run / SNAPSHOT).read_bytes()[:-9]),
}


@pytest.mark.rules("A61", "A74", "A76", "C11", "C12", "C52")
@pytest.mark.parametrize("damage", SNAPSHOT_DAMAGE.values(), ids=SNAPSHOT_DAMAGE)
def test_a_damaged_source_snapshot_is_refused_and_named(run_dir: Path, damage: Callable[[Path], Any]) -> None:
    damage(run_dir)

    (failure,) = verify(run_dir)
    assert failure.name == "source_snapshot"
    assert SNAPSHOT in failure.expected


@pytest.mark.rules("C11", "C12")
def test_the_plan_directory_alone_is_refused(run_dir: Path, tmp_path: Path) -> None:
    alone = tmp_path / "archive" / RUN_ID
    alone.mkdir(parents=True)
    (run_dir / "plan").rename(alone / "plan")

    (failure,) = verify(alone)
    assert "keep the whole run directory" in failure.found


PATHS_OUT = [
    "../A/BuiltinTag.parquet", "/etc/passwd", "A/../../x", "A//x", "A/./x", "", "A/x\\y", "plan/manifest.json",
    "B/BuiltinTag.parquet", "A", "A/out.parquet", None, 7, ["A/x"],
]  # fmt: skip


@pytest.mark.rules("A61", "G11")
@pytest.mark.parametrize("path", PATHS_OUT)
def test_a_recorded_path_never_leads_out_of_the_source_side(run_dir: Path, tmp_path: Path, path: Any) -> None:
    (tmp_path / "outside.parquet").write_bytes((run_dir / SNAPSHOT).read_bytes())
    (run_dir / "A" / "out.parquet").symlink_to(tmp_path / "outside.parquet")
    document = json.loads((run_dir / MANIFEST_FILE).read_bytes())
    edit(run_dir, source_snapshot=[{**document["source_snapshot"][0], "path": path}])

    assert "source_snapshot" in names(verify(run_dir))


@pytest.mark.rules("A87")
def test_each_of_several_snapshots_is_named(run_dir: Path) -> None:
    document = json.loads((run_dir / MANIFEST_FILE).read_bytes())
    record = document["source_snapshot"][0]
    edit(run_dir, source_snapshot=[record, {**record, "path": "A/gone.parquet"}, {**record, "path": "A/lost.parquet"}])

    assert [failure.expected.split(":")[0] for failure in verify(run_dir)] == ["'A/gone.parquet'", "'A/lost.parquet'"]


@pytest.mark.rules("A12", "A13")
def test_a_snapshot_that_may_not_be_read_raises_and_is_no_failure(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = read_raw_artifact(run_dir)
    original = os.open

    def refusing(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith(".parquet"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return original(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(PlanArtifactUnreadableError, match="Permission denied"):
        verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION)


@pytest.mark.rules("C53", "A4")
def test_the_other_files_of_a_run_are_no_part_of_the_gate(run_dir: Path) -> None:
    for name in ("schema-sub-hash.txt", "run.json", "cursors.json", "plan.parquet", "errors.parquet"):
        (run_dir / name).write_bytes(b"anything")
    (run_dir / "B").mkdir()
    (run_dir / "B" / "BuiltinTag.parquet").write_bytes(b"not bound")

    assert verify(run_dir) == []


@pytest.mark.rules("C54")
def test_the_destination_is_not_compared_in_this_gate(run_dir: Path) -> None:
    edit(run_dir, destination_binding={"url": "http://elsewhere", "branch": "other"})

    assert verify(run_dir) == []


# --- coverage -----------------------------------------------------------------------------------------------------

COVERAGE_DAMAGE: dict[str, Callable[[Path], Any]] = {
    "absent": lambda run: (run / COVERAGE_FILE).unlink(),
    "empty": lambda run: (run / COVERAGE_FILE).write_bytes(b""),
    "another line": lambda run: (run / COVERAGE_FILE).write_bytes(COVERAGE + b'{"action":"none"}\n'),
    "another text in a line": lambda run: (run / COVERAGE_FILE).write_bytes(COVERAGE.replace(b"}", b',"reason":"x"}')),
    "not covered": lambda run: edit(run, coverage=None),
    "wrong counts": lambda run: edit(run, coverage=_stated(run, counts={**COUNTS, "none": 2})),
    "a count left out": lambda run: edit(run, coverage=_stated(run, counts={"none": 1, "skip": 1})),
    "a boolean count": lambda run: edit(run, coverage=_stated(run, counts={**COUNTS, "none": True})),
    "no counts": lambda run: edit(run, coverage=_stated(run, counts=None)),
}


def _stated(run: Path, **changes: Any) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((run / MANIFEST_FILE).read_bytes())["coverage"]
    return {**recorded, **changes}


@pytest.mark.rules("H11", "H12", "G1")
@pytest.mark.parametrize("damage", COVERAGE_DAMAGE.values(), ids=COVERAGE_DAMAGE)
def test_coverage_that_is_not_the_recorded_one_is_refused(run_dir: Path, damage: Callable[[Path], Any]) -> None:
    damage(run_dir)

    assert "coverage" in names(verify(run_dir))


# --- arguments ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "/a", "a\n", "-a", "a b", "é", "a" * 129, "a\x00"])
def test_a_run_id_is_one_path_segment(run_dir: Path, run_id: str) -> None:
    with pytest.raises(RunIdInvalidError):
        verify(run_dir, run_id=run_id)


@pytest.mark.rules("G12")
def test_g12_long_and_secret_values_of_a_manifest_are_not_spilled(run_dir: Path) -> None:
    edit(run_dir, destination_binding={"url": "http://a:hunter2@b", "branch": "main", "token": "hunter2"})
    edit(run_dir, run_id="x" * 10_000)

    text = "\n".join(str(failure.finding()) for failure in verify(run_dir))
    assert "hunter2" not in text
    assert len(text) < 2000
