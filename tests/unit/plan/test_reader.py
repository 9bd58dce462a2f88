"""Reading an artifact: what is there, what is missing and what cannot be read are told apart."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.errors import (
    PathOutsideRunError,
    PlanArtifactAbsentError,
    PlanArtifactUnreadableError,
    PlanFormatApplyUnsupportedError,
    TornPlanArtifactError,
    UnrecognisedPlanFormatError,
    UnsupportedOperationActionError,
)
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.reader import load_plan_artifact, read_raw_artifact, require_applicable, require_plan_directory
from tests.support.plan_lines import A, B, C
from tests.support.plans import line, manifest_document, raw_run, record, write_plan


@pytest.mark.rules("A7", "C33", "C34", "P101", "P104")
@pytest.mark.parametrize("exists", [True, False])
def test_a_run_without_plan_directory_names_all_three_causes(tmp_path: Path, exists: bool) -> None:
    run_dir = tmp_path / "20260726T1804-9f3ac210"
    if exists:
        run_dir.mkdir()
        (run_dir / "plan.parquet").write_bytes(b"PAR1")

    for read in (require_plan_directory, read_raw_artifact, load_plan_artifact):
        with pytest.raises(PlanArtifactAbsentError) as caught:
            read(run_dir)
        assert all(cause in str(caught.value) for cause in ("plan.parquet", "never written", "removed"))
        assert "fresh plan" in caught.value.next_action


@pytest.mark.rules("A8", "A9", "A10", "A62", "C23", "C33", "P104")
@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda run: (run / MANIFEST_FILE).unlink(), "never completed"),
        (lambda run: (run / MANIFEST_FILE).write_bytes(b""), "MalformedJsonError"),
        (lambda run: (run / MANIFEST_FILE).write_bytes(b'{"format_version":3}'), "run_id"),
        (lambda run: (run / OPERATIONS_FILE).unlink(), "no such file"),
        (lambda run: (run / OPERATIONS_FILE).write_bytes(b""), "0 lines"),
        (lambda run: (run / OPERATIONS_FILE).write_bytes(A), "1 lines"),
        (lambda run: (run / OPERATIONS_FILE).write_bytes(A + B + C), "3 lines"),
    ],
)
def test_a_torn_artifact_says_which_part_is_torn(tmp_path: Path, damage: Callable[[Path], Any], says: str) -> None:
    run_dir = raw_run(tmp_path, A + B)
    damage(run_dir)

    with pytest.raises(TornPlanArtifactError, match=says):
        load_plan_artifact(run_dir)


@pytest.mark.rules("A11", "C21", "P104")
def test_an_unknown_format_is_not_partially_read(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, b"no operations at all", manifest_document(b"", format_version=4))

    with pytest.raises(UnrecognisedPlanFormatError, match="found 4"):
        load_plan_artifact(run_dir)


def _file_as_plan(run_dir: Path) -> None:
    (run_dir / "plan").write_bytes(b"")


def _directory(name: str) -> Callable[[Path], None]:
    return lambda run_dir: (run_dir / name).mkdir(parents=True)


def _fifo(run_dir: Path) -> None:
    (run_dir / "plan").mkdir()
    os.mkfifo(run_dir / OPERATIONS_FILE)


def _loop(run_dir: Path) -> None:
    (run_dir / "plan").mkdir()
    (run_dir / MANIFEST_FILE).symlink_to("manifest.json")


def _dangling(run_dir: Path) -> None:
    (run_dir / "plan").mkdir()
    (run_dir / OPERATIONS_FILE).symlink_to("gone.jsonl")


def _dangling_plan(run_dir: Path) -> None:
    (run_dir / "plan").symlink_to("gone")


UNREADABLE = {
    "plan is a file": _file_as_plan,
    "the manifest is a directory": _directory(MANIFEST_FILE),
    "the operations are a directory": _directory(OPERATIONS_FILE),
    "the coverage is a directory": _directory("plan/coverage.jsonl"),
    "the operations are a pipe": _fifo,
    "a loop of links": _loop,
    "a link to nothing": _dangling,
    "plan is a link to nothing": _dangling_plan,
}


@pytest.mark.rules("A12", "A13")
@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
def test_what_is_there_and_cannot_be_read_is_unreadable_and_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    make(run_dir)

    with pytest.raises(PlanArtifactUnreadableError) as caught:
        read_raw_artifact(run_dir)
    assert str(run_dir / "plan") in str(caught.value)


def test_a_manifest_beyond_any_plan_is_not_read_into_memory(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, A)
    with (run_dir / MANIFEST_FILE).open("wb") as file:
        file.truncate(10**12)

    with pytest.raises(PlanArtifactUnreadableError, match="more than"):
        read_raw_artifact(run_dir)


@pytest.mark.rules("A12", "A13")
@pytest.mark.parametrize("file", [MANIFEST_FILE, OPERATIONS_FILE, "plan"])
def test_a_missing_permission_is_unreadable_and_not_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    run_dir = raw_run(tmp_path, A)
    # An administrator may read anything, so the operating system's answer is put in its mouth.
    for name in ("open", "stat"):
        original = getattr(os, name)

        def refusing(path: Any, *args: Any, original: Any = original, **kwargs: Any) -> Any:
            if str(path) == str(run_dir / file):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
            return original(path, *args, **kwargs)

        monkeypatch.setattr(os, name, refusing)

    with pytest.raises(PlanArtifactUnreadableError, match="Permission denied") as caught:
        read_raw_artifact(run_dir)
    assert str(run_dir / file) in str(caught.value)


@pytest.mark.parametrize("file", [MANIFEST_FILE, OPERATIONS_FILE])
def test_a_link_out_of_the_run_is_refused(tmp_path: Path, file: str) -> None:
    run_dir = raw_run(tmp_path, A)
    outside = tmp_path / "outside"
    (run_dir / file).rename(outside)
    (run_dir / file).symlink_to(outside)

    with pytest.raises(PathOutsideRunError):
        read_raw_artifact(run_dir)


def test_a_plan_directory_that_is_a_link_out_of_the_run_is_refused(tmp_path: Path) -> None:
    other = raw_run(tmp_path / "other", A)
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "plan").symlink_to(other / "plan")

    with pytest.raises(PathOutsideRunError):
        read_raw_artifact(run_dir)


def test_a_run_that_is_reached_through_a_link_is_read(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path / "cache", A)
    (tmp_path / "link").symlink_to(run_dir)

    assert len(load_plan_artifact(tmp_path / "link").operations) == 1


def test_a_stray_temporary_file_is_not_read(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, A)
    (run_dir / "plan" / ".manifest.json.0011.tmp").write_bytes(b"half")

    assert len(load_plan_artifact(run_dir).operations) == 1


@pytest.mark.rules("A16", "A62", "C20", "P121")
def test_an_empty_plan_is_a_zero_byte_file_and_no_missing_one(tmp_path: Path) -> None:
    run_dir, _ = write_plan(tmp_path, [])

    assert (run_dir / OPERATIONS_FILE).read_bytes() == b""
    assert load_plan_artifact(run_dir).operations == ()


@pytest.mark.rules("P106", "P107", "P108", "C21")
def test_format_2_is_read_and_reviewed_but_not_applied(tmp_path: Path) -> None:
    values = record("update")
    del values["destination_id"]
    operations = line(values)
    artifact = load_plan_artifact(raw_run(tmp_path, operations, manifest_document(operations, format_version=2)))

    assert artifact.operations[0].destination_id is None
    with pytest.raises(PlanFormatApplyUnsupportedError) as caught:
        require_applicable(artifact)
    assert "fresh plan" in caught.value.next_action
    assert "reviewed" in caught.value.found


@pytest.mark.rules("P107", "A10")
def test_a_torn_format_2_plan_is_torn_and_not_merely_old(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, A, manifest_document(A, format_version=2, operations_count=2))

    with pytest.raises(TornPlanArtifactError):
        load_plan_artifact(run_dir)


def test_reading_leaves_the_collector_of_cycles_as_it_was(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, b"{}\n")
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            with pytest.raises(TornPlanArtifactError):
                load_plan_artifact(run_dir)
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


@pytest.mark.rules("G11")
def test_g11_each_verdict_is_a_refusal_before_any_write() -> None:
    for verdict in (
        PlanArtifactAbsentError, TornPlanArtifactError, UnrecognisedPlanFormatError, PlanArtifactUnreadableError,
        PlanFormatApplyUnsupportedError, UnsupportedOperationActionError,
    ):  # fmt: skip
        assert issubclass(verdict, ApplyLedgerError)
        assert verdict.exit_code is ExitCode.REFUSED
