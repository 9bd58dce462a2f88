"""Writing an artifact: the order of the files, what is refused before the first byte, and what never happens twice."""

from __future__ import annotations

import json
import os
import threading
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ledger.binding import DestinationBinding
from ledger.plan import writer
from ledger.plan.checksum import plan_checksum
from ledger.plan.decode import MAX_LINE_BYTES, MAX_VALUES
from ledger.plan.errors import (
    DuplicateOperationIdError,
    LineTooLongError,
    ManifestInvalidError,
    PlanAlreadyWrittenError,
    PlanArtifactError,
    PlanOperationInvalidError,
    PlanWriteFailedError,
    RunIdInvalidError,
    SnapshotValueError,
    TooManyValuesError,
    TornPlanArtifactError,
    UnserializablePayloadValueError,
)
from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.model import CHECKSUM_EXCLUDED, PlannedOperation, SourceSnapshotRecord
from ledger.plan.reader import load_plan_artifact, read_raw_artifact
from ledger.plan.verify import verify_plan
from tests.support.plans import CONFIG_VERSION, CREATED_AT, RUN_ID, operation, record, tags, write_plan

COVERAGE = [b'{"action":"create"}\n', b'{"action":"none"}\n', b'{"action":"none"}\n']
COUNTS = {"create": 1, "update": 0, "remove": 0, "skip": 0, "none": 2}


def document_of(run_dir: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run_dir / MANIFEST_FILE).read_bytes())
    return document


@pytest.mark.rules("A1", "A2", "A4", "A5", "A57", "A58", "A62", "A63", "A66", "C10", "C13", "C24")
def test_a_written_plan_verifies_and_says_what_was_written(tmp_path: Path) -> None:
    operations = [
        *tags("a", "b"),
        operation("update", identity={"name": "u"}),
        operation("delete", identity={"name": "d"}),
    ]
    run_dir, manifest = write_plan(tmp_path, operations, coverage_lines=COVERAGE, coverage_counts=COUNTS)

    raw = read_raw_artifact(run_dir)
    assert verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION) == []
    artifact = load_plan_artifact(run_dir)
    assert artifact.manifest == manifest
    assert set(artifact.lines) == {made.line() for made in operations}
    assert manifest.format_version == 3
    assert manifest.operations_count == 4
    assert manifest.source == "from-netbox"
    assert manifest.plan_checksum == plan_checksum(artifact.manifest_document, raw.operations_bytes)
    assert (run_dir / MANIFEST_FILE).read_bytes().count(b"\n") == 0


@pytest.mark.rules("A5", "A6", "C32")
def test_coverage_and_operations_are_written_before_the_manifest_each_through_a_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[str] = []
    original = os.link

    def noting(source: Any, target: Any, **kwargs: Any) -> None:
        assert Path(source).parent == Path(target).parent
        placed.append(Path(target).name)
        original(source, target, **kwargs)

    monkeypatch.setattr(os, "link", noting)
    write_plan(tmp_path, tags("a"), coverage_lines=COVERAGE, coverage_counts=COUNTS)

    assert placed == ["coverage.jsonl", "operations.jsonl", "manifest.json"]


@pytest.mark.rules("A5", "A8", "C32", "C33")
@pytest.mark.parametrize("failing", ["coverage.jsonl", "operations.jsonl", "manifest.json"])
def test_a_death_before_the_manifest_leaves_a_torn_plan_and_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    original = os.fsync

    def full(descriptor: int) -> None:
        if failing in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        original(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlanWriteFailedError, match="No space left") as caught:
        write_plan(tmp_path, tags("a"), coverage_lines=COVERAGE, coverage_counts=COUNTS)
    monkeypatch.undo()

    assert failing in str(caught.value)
    run_dir = tmp_path / RUN_ID
    names = sorted(path.name for path in (run_dir / "plan").iterdir())
    assert (
        names
        == ["coverage.jsonl", "operations.jsonl"][
            : ["coverage.jsonl", "operations.jsonl", "manifest.json"].index(failing)
        ]
    )
    with pytest.raises(TornPlanArtifactError):
        load_plan_artifact(run_dir)


@pytest.mark.rules("A30", "A21", "C14")
def test_operations_are_stored_by_tier_and_identifier(tmp_path: Path) -> None:
    operations = [*tags("x", "y", tier=10), *tags("a", "b", tier=2), *tags("m", "n", tier=0)]
    one, _ = write_plan(tmp_path / "1", operations)
    other, _ = write_plan(tmp_path / "2", reversed(operations))

    assert (one / OPERATIONS_FILE).read_bytes() == (other / OPERATIONS_FILE).read_bytes()
    tiers = [json.loads(line)["tier"] for line in (one / OPERATIONS_FILE).read_bytes().splitlines()]
    assert tiers == [0, 0, 2, 2, 10, 10]


@pytest.mark.rules("A70", "A77", "A78", "A68", "C29")
def test_two_plans_of_an_unchanged_world_differ_in_run_and_time_alone(tmp_path: Path) -> None:
    one, first = write_plan(tmp_path, tags("a", "b"), coverage_lines=COVERAGE, coverage_counts=COUNTS)
    later: dict[str, Any] = {"run_id": "20260727T0900-00000000", "created_at": CREATED_AT + timedelta(days=1)}
    other, second = write_plan(tmp_path, tags("b", "a"), coverage_lines=COVERAGE, coverage_counts=COUNTS, **later)

    assert (one / OPERATIONS_FILE).read_bytes() == (other / OPERATIONS_FILE).read_bytes()
    assert first.plan_checksum == second.plan_checksum
    documents = [document_of(run_dir) for run_dir in (one, other)]
    assert documents[0] != documents[1]
    for document in documents:
        del document["run_id"], document["created_at"]
    assert documents[0] == documents[1]


@pytest.mark.rules("A63", "A79", "C37", "C38")
def test_whether_deletes_were_computed_is_inside_the_checksum(tmp_path: Path) -> None:
    _, computed = write_plan(tmp_path / "1", tags("a"), delete_operations_computed=True)
    _, not_computed = write_plan(tmp_path / "2", tags("a"), delete_operations_computed=False)

    assert not_computed.delete_operations_computed is False
    assert computed.plan_checksum != not_computed.plan_checksum


@pytest.mark.rules("A54", "A66")
def test_another_payload_under_the_same_identifier_is_another_checksum(tmp_path: Path) -> None:
    one, first = write_plan(tmp_path / "1", [operation()])
    other, second = write_plan(tmp_path / "2", [operation(payload={"name": "prod", "description": "x"})])

    assert load_plan_artifact(one).operations[0].operation_id == load_plan_artifact(other).operations[0].operation_id
    assert first.plan_checksum != second.plan_checksum


# --- refusals before the first byte ---------------------------------------------------------------------------------


def refused(root: Path, operations: list[PlannedOperation], **changes: Any) -> PlanArtifactError:
    """The refusal of a plan of which nothing was written."""
    with pytest.raises(PlanArtifactError) as caught:
        write_plan(root, operations, **changes)
    assert not list(root.rglob("plan"))
    return caught.value


@pytest.mark.rules("A55", "C15")
def test_two_operations_of_one_identity_fail_the_plan_before_anything_is_written(tmp_path: Path) -> None:
    error = refused(tmp_path, [*tags("a", "b"), operation(identity={"name": "a"}, payload={"name": "a", "x": 1})])

    assert type(error) is DuplicateOperationIdError
    assert error.found.count("create BuiltinTag") == 2
    assert error.found.count(r"\"name\":\"a\"") == 2 or error.found.count('"name":"a"') == 2


@pytest.mark.rules("A55", "C15")
def test_one_identity_in_two_tiers_is_the_same_operation(tmp_path: Path) -> None:
    assert type(refused(tmp_path, [*tags("a", tier=0), *tags("a", tier=1)])) is DuplicateOperationIdError


@pytest.mark.rules("A44", "P52")
def test_an_update_without_a_recorded_id_is_never_written(tmp_path: Path) -> None:
    values = record("update")
    del values["destination_id"]

    assert type(refused(tmp_path, [PlannedOperation.model_validate(values)])) is PlanOperationInvalidError


def test_an_operation_that_no_reader_accepts_is_never_written(tmp_path: Path) -> None:
    huge = operation(payload={"name": "prod", "x": "y" * (16 * 1024 * 1024)})

    assert type(refused(tmp_path, [huge])) is LineTooLongError
    many = operation(payload={"name": "prod", "x": [1] * MAX_VALUES})
    assert type(refused(tmp_path / "many", [many])) is TooManyValuesError


@pytest.mark.rules("A5", "C32")
def test_an_account_that_no_reader_accepts_leaves_no_manifest(tmp_path: Path) -> None:
    hostile = {b"1," * MAX_VALUES: TooManyValuesError, b"1" * MAX_LINE_BYTES: LineTooLongError}
    for number, (value, error) in enumerate(hostile.items()):
        lines = [b'{"action":"none","x":[' + value + b"1]}\n"]
        with pytest.raises(error, match=r"plan/coverage\.jsonl line 1"):
            write_plan(tmp_path / str(number), tags("a"), coverage_lines=lines, coverage_counts=COUNTS)
    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize("run_id", ["..", "", "a/b", "-x", "a\n"])
def test_a_run_id_that_is_no_segment_is_never_written(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(RunIdInvalidError):
        writer.write_plan_artifact(tmp_path / "run", **_arguments(run_id=run_id))
    assert not list(tmp_path.iterdir())


@pytest.mark.rules("A58")
def test_a_plan_is_written_into_the_directory_of_its_own_run(tmp_path: Path) -> None:
    with pytest.raises(ManifestInvalidError, match="named like the run"):
        writer.write_plan_artifact(tmp_path / "other", **_arguments())


def _arguments(**changes: Any) -> dict[str, Any]:
    return {
        "operations": [], "coverage_lines": None, "coverage_counts": None, "run_id": RUN_ID, "created_at": CREATED_AT,
        "config_version": "1", "source": "s", "binding": None, "source_snapshot": [],
        "delete_operations_computed": True, **changes,
    }  # fmt: skip


REFUSED_HEADERS: dict[str, tuple[dict[str, Any], type[PlanArtifactError]]] = {
    "a time without a zone": ({"created_at": datetime(2026, 1, 1)}, ManifestInvalidError),
    "no configuration version": ({"config_version": ""}, ManifestInvalidError),
    "a binding with a password": (
        {"binding": DestinationBinding(url="http://a:hunter2@b", branch="main")}, ManifestInvalidError),
    "a binding with a raw query": (
        {"binding": DestinationBinding(url="http://b/?token=hunter2", branch="main")}, ManifestInvalidError),
    "a key of the format": ({"extra": {"run_id": "x"}}, ManifestInvalidError),
    "a key of the registry": ({"extra": {"config_id": "x"}}, ManifestInvalidError),
    "a fingerprint": ({"extra": {"schema_fingerprint": "a" * 64}}, ManifestInvalidError),
    "a value without canonical form": ({"extra": {"x": b"y"}}, UnserializablePayloadValueError),
    "a snapshot of the destination": (
        {"source_snapshot": [SourceSnapshotRecord(path="B/x", digest="0" * 64, row_count=0)]}, SnapshotValueError),
    "one snapshot twice": (
        {"source_snapshot": [SourceSnapshotRecord(path="A/", digest="0" * 64, row_count=0)] * 2}, ManifestInvalidError),
}  # fmt: skip


@pytest.mark.rules("A59", "A60", "A61", "A64", "A67", "C24", "C25", "G12")
@pytest.mark.parametrize(("changes", "error"), REFUSED_HEADERS.values(), ids=REFUSED_HEADERS)
def test_a_header_that_would_be_refused_is_never_written(
    tmp_path: Path, changes: dict[str, Any], error: type[PlanArtifactError]
) -> None:
    found = refused(tmp_path, tags("a"), **changes)

    assert type(found) is error
    assert "hunter2" not in str(found)


@pytest.mark.rules("C30", "A67")
def test_further_keys_are_written_and_inside_the_checksum(tmp_path: Path) -> None:
    run_dir, manifest = write_plan(tmp_path, tags("a"), extra={"row_counts": {"BuiltinTag": 3}})

    assert document_of(run_dir)["row_counts"] == {"BuiltinTag": 3}
    assert manifest.model_extra == {"row_counts": {"BuiltinTag": 3}}
    assert not {"config_id", "registry_version", "package_checksum", "schema_fingerprint"} & document_of(run_dir).keys()


@pytest.mark.rules("A61")
def test_snapshots_are_recorded_in_the_order_of_their_paths(tmp_path: Path) -> None:
    records = [SourceSnapshotRecord(path=f"A/{name}.parquet", digest="0" * 64, row_count=0) for name in ("b", "a", "B")]
    run_dir, _ = write_plan(tmp_path, tags("a"), source_snapshot=records)

    assert [found["path"] for found in document_of(run_dir)["source_snapshot"]] == [
        "A/B.parquet", "A/a.parquet", "A/b.parquet",
    ]  # fmt: skip


@pytest.mark.rules("A59")
def test_the_time_of_writing_is_stored_in_utc(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2)))

    assert write_plan(tmp_path, [], created_at=moment)[1].created_at == "2025-12-31T23:00:00.000000+00:00"


# --- a run that is there --------------------------------------------------------------------------------------------


def test_a_run_that_has_a_plan_is_never_overwritten(tmp_path: Path) -> None:
    run_dir, manifest = write_plan(tmp_path, tags("a"))
    before = {path: path.read_bytes() for path in (run_dir / "plan").iterdir()}

    with pytest.raises(PlanAlreadyWrittenError):
        writer.write_plan_artifact(run_dir, **_arguments(operations=tags("b")))
    assert {path: path.read_bytes() for path in (run_dir / "plan").iterdir()} == before
    assert load_plan_artifact(run_dir).manifest == manifest


def test_a_torn_plan_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / RUN_ID / "plan").mkdir(parents=True)

    with pytest.raises(PlanAlreadyWrittenError):
        writer.write_plan_artifact(tmp_path / RUN_ID, **_arguments())


def test_of_two_planners_of_one_run_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / RUN_ID).mkdir()
    together = threading.Barrier(8)
    results: list[type] = []

    def plan(name: str) -> None:
        together.wait()
        try:
            results.append(type(writer.write_plan_artifact(tmp_path / RUN_ID, **_arguments(operations=tags(name)))))
        except PlanAlreadyWrittenError as exc:
            results.append(type(exc))

    threads = [threading.Thread(target=plan, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results.count(PlanAlreadyWrittenError) == 7
    assert len(load_plan_artifact(tmp_path / RUN_ID).operations) == 1


# --- coverage -------------------------------------------------------------------------------------------------------


@pytest.mark.rules("H11", "H12")
def test_coverage_is_recorded_with_digest_and_all_five_counts(tmp_path: Path) -> None:
    run_dir, manifest = write_plan(tmp_path, tags("a"), coverage_lines=iter(COVERAGE), coverage_counts=COUNTS)

    assert manifest.coverage is not None
    assert manifest.coverage.counts == COUNTS
    assert (run_dir / COVERAGE_FILE).read_bytes() == b"".join(COVERAGE)
    empty, written = write_plan(tmp_path / "2", [], coverage_lines=[], coverage_counts=dict.fromkeys(COUNTS, 0))
    assert (empty / COVERAGE_FILE).read_bytes() == b""
    assert written.coverage is not None


BAD_COUNTS: dict[str, tuple[list[bytes], dict[str, int] | None]] = {
    "other counts": (COVERAGE, {**COUNTS, "none": 3}),
    "no counts": (COVERAGE, None),
    "an unknown action": ([b'{"action":"restart"}\n'], dict.fromkeys(COUNTS, 0)),
    "two lines in one": ([b"".join(COVERAGE)], {**COUNTS, "none": 0}),
}


@pytest.mark.rules("H12", "H14")
@pytest.mark.parametrize(("lines", "counts"), BAD_COUNTS.values(), ids=BAD_COUNTS)
def test_coverage_with_other_counts_leaves_no_manifest(
    tmp_path: Path, lines: list[bytes], counts: dict[str, int] | None
) -> None:
    with pytest.raises(ManifestInvalidError):
        write_plan(tmp_path, tags("a"), coverage_lines=lines, coverage_counts=counts)
    assert not (tmp_path / RUN_ID / MANIFEST_FILE).exists()


def test_an_error_of_the_coverage_passes_through_and_leaves_no_manifest(tmp_path: Path) -> None:
    def lines() -> Any:
        yield COVERAGE[0]
        raise OSError("the source of the lines")

    with pytest.raises(OSError, match="the source of the lines"):
        write_plan(tmp_path, tags("a"), coverage_lines=lines(), coverage_counts=COUNTS)
    assert [path.name for path in (tmp_path / RUN_ID / "plan").iterdir()] == []


@pytest.mark.rules("A67")
def test_the_excluded_keys_are_those_of_the_format() -> None:
    assert CHECKSUM_EXCLUDED == ("plan_checksum", "run_id", "created_at")
