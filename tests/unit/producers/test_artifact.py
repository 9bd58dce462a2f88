"""What a run leaves on disk: the plan, its coverage, the snapshots and the sidecars."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ledger.plan.coverage import CoverageLine
from ledger.plan.coverage_account import read_coverage
from ledger.plan.reader import read_raw_artifact
from ledger.plan.snapshot_digest import snapshot_digest
from ledger.plan.verify import verify_plan
from producers.planning import PlannedRun
from producers.run_directory import read_run_record
from tests.support.fake_reader import FakeDestination
from tests.support.planning import Rows, entry, mapped, operations, plan, small

TAGS = entry(
    "BuiltinTag",
    "tags",
    ["name"],
    mapped("name"),
    mapped("description"),
    filters=[{"field": "id", "operation": "<", "value": 90}],
)
SITES = entry(
    "LocationSite", "sites", ["name"], mapped("name"), mapped("facility"), mapped("tags", "tags", "BuiltinTag")
)
ROWS: Rows = {
    "tags": [{"id": n, "name": f"t{n}", "description": "d"} for n in range(4)],
    "sites": [{"id": 1, "name": "s", "facility": "new", "tags": [{"id": 1}]}],
}


def _destination() -> FakeDestination:
    destination = FakeDestination(namespaces=())
    destination.add("BuiltinTag", name="t0", description="d")
    old = destination.add("BuiltinTag", name="old", description="was here")
    destination.add("LocationSite", name="s", facility="before", tags=[old])
    return destination


def _coverage(run: PlannedRun) -> dict[str, CoverageLine]:
    lines = read_coverage((run.run_dir / "plan" / "coverage.jsonl").read_bytes())
    return {line.identity["name"]: line for line in lines}


@pytest.mark.rules("C40", "C41", "C42", "C44", "C45")
async def test_a_run_holds_a_table_of_its_changes_for_queries(tmp_path: Path) -> None:
    run = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path)
    rows = pq.read_table(run.run_dir / "plan.parquet").to_pylist()
    operations = [json.loads(line) for line in (run.run_dir / "plan" / "operations.jsonl").read_bytes().splitlines()]
    assert [(row["action"], row["resource"]) for row in rows] == [(op["action"], op["kind"]) for op in operations]
    (site,) = [row for row in rows if row["resource"] == "LocationSite" and row["action"] == "update"]
    assert site["source_id"] == "s"
    difference = next(line.differences for line in _coverage(run).values() if line.kind == "LocationSite")
    assert json.loads(site["old_value"]) == {name: value.observed for name, value in difference.items()}
    new = json.loads(site["new_value"])
    assert {name: new[name] for name in difference} == {name: value.desired for name, value in difference.items()}
    assert {row["old_value"] for row in rows if row["action"] != "update"} == {""}


@pytest.mark.rules("A1", "A2", "C1", "C4", "C6", "C7", "C8", "C10", "C20", "H3")
async def test_a_run_holds_plan_snapshots_and_sidecars(tmp_path: Path) -> None:
    run = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path, ledger_position=12)
    files = sorted(str(path.relative_to(run.run_dir)) for path in run.run_dir.rglob("*") if path.is_file())
    assert files == [
        "A/BuiltinTag.parquet",
        "A/LocationSite.parquet",
        "B/BuiltinTag.parquet",
        "B/LocationSite.parquet",
        "cursors.json",
        "plan.parquet",
        "plan/coverage.jsonl",
        "plan/manifest.json",
        "plan/operations.jsonl",
        "run.json",
        "schema-sub-hash.txt",
    ]
    assert run.run_dir.parent == tmp_path / "small"
    assert json.loads((run.run_dir / "cursors.json").read_bytes()) == {
        side: {"BuiltinTag": None, "LocationSite": None} for side in "AB"
    }
    assert len((run.run_dir / "schema-sub-hash.txt").read_text().strip()) == 64
    record = read_run_record(run.run_dir)
    assert (record.status, record.mode, record.summary) == ("planned", "full", dict(run.counts))
    assert record.configuration == str(tmp_path / "small.yml")
    assert record.ledger_position == 12
    raw = read_raw_artifact(run.run_dir)
    assert verify_plan(artifact=raw, run_id=run.run_id, config_version=run.manifest.config_version) == []


@pytest.mark.rules("C5")
async def test_no_errors_no_error_table_and_with_errors_one(tmp_path: Path) -> None:
    clean = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path)
    assert not (clean.run_dir / "errors.parquet").exists()
    faulty: Rows = {**ROWS, "sites": [{"id": 1, "name": None}]}
    run = await plan(small(tmp_path, faulty, [TAGS, SITES]), _destination(), tmp_path, continue_on_error=True)
    table = pq.read_table(run.run_dir / "errors.parquet").to_pylist()
    assert [row["name"] for row in table] == ["UnkeyedCreateRefusedError"]
    assert set(table[0]) == {"name", "checked", "expected", "found", "next_action"}


@pytest.mark.rules("H5", "H6", "H7", "H8", "H9", "H11", "H12", "H15", "H16", "H17", "H18", "H22")
async def test_coverage_has_one_line_for_every_resource_considered(tmp_path: Path) -> None:
    run = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path)
    lines = _coverage(run)
    assert {name: line.action for name, line in lines.items()} == {
        "t0": "none",
        "t1": "create",
        "t2": "create",
        "t3": "create",
        "s": "update",
        "old": "remove",
    }
    assert run.counts == {"create": 3, "update": 1, "remove": 1, "skip": 0, "none": 1}
    update = lines["s"]
    assert {name: (item.observed, item.desired) for name, item in update.differences.items()} == {
        "facility": ("before", "new"),
        "tags": (
            [{"identity": {"name": "old"}, "peer_kind": "BuiltinTag"}],
            [{"identity": {"name": "t1"}, "peer_kind": "BuiltinTag"}],
        ),
    }
    assert update.entry is not None
    assert (update.entry.index, update.entry.name) == (1, "sites")
    assert (update.providers.source, update.providers.destination) == ("jsonl", "infrahub")
    assert lines["t0"].filters == [{"field": "id", "operation": "<", "value": 90}]
    removed = lines["old"]
    assert removed.differences["description"].observed == "was here"
    assert removed.destination_id is not None
    by_id = {op.operation_id: op for op in operations(run)}
    assert {line.operation_id for line in lines.values() if line.operation_id} == set(by_id)
    assert all(by_id[line.operation_id].tier == line.tier for line in lines.values() if line.operation_id)


@pytest.mark.rules("A37", "A38", "A39", "A44", "A45", "A46")
async def test_an_update_carries_identity_recorded_id_and_all_fields(tmp_path: Path) -> None:
    destination = _destination()
    run = await plan(small(tmp_path, ROWS, [TAGS, SITES]), destination, tmp_path)
    update = next(op for op in operations(run) if op.action == "update")
    assert update.destination_id == destination.named("LocationSite", name="s").id
    assert update.payload == {"facility": "new", "name": "s"}
    assert [reference.field for reference in update.relationships or []] == ["tags"]


@pytest.mark.rules("A70", "A77", "A78", "A79", "C29", "H25")
@pytest.mark.parametrize("concurrent", [(True, True), (True, False)])
async def test_two_runs_over_an_unchanged_world_are_byte_identical(
    tmp_path: Path, concurrent: tuple[bool, bool]
) -> None:
    loaded = small(tmp_path, ROWS, [TAGS, SITES])
    runs = [
        await plan(loaded, _destination(), tmp_path, concurrent_load=concurrent[number], ledger_position=number)
        for number in range(2)
    ]
    for name in ("operations.jsonl", "coverage.jsonl"):
        first, second = ((run.run_dir / "plan" / name).read_bytes() for run in runs)
        assert first == second
    manifests = [json.loads((run.run_dir / "plan" / "manifest.json").read_bytes()) for run in runs]
    for manifest in manifests:
        assert manifest.pop("run_id")
        assert manifest.pop("created_at")
    assert manifests[0] == manifests[1]
    assert runs[0].manifest.plan_checksum == runs[1].manifest.plan_checksum
    assert runs[0].run_id != runs[1].run_id


@pytest.mark.rules("A61", "A74")
async def test_snapshots_hold_the_selected_rows_and_are_bound_by_path(tmp_path: Path) -> None:
    run = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path)
    recorded = {item.path: (item.digest, item.row_count) for item in run.manifest.source_snapshot}
    assert list(recorded) == sorted(recorded) == ["A/BuiltinTag.parquet", "A/LocationSite.parquet"]
    for path, digest_and_count in recorded.items():
        assert snapshot_digest(run.run_dir / path) == digest_and_count
    rows = pq.read_table(run.run_dir / "A" / "LocationSite.parquet").to_pylist()
    assert (rows[0]["_source_id"], rows[0]["name"], rows[0]["tags"]) == ("1", "s", '[{"id":"1"}]')


@pytest.mark.rules("C4")
async def test_ff04_a_kind_without_rows_still_has_a_snapshot_with_its_columns(tmp_path: Path) -> None:
    run = await plan(small(tmp_path, {"tags": []}, [TAGS]), FakeDestination(namespaces=()), tmp_path)
    table = pq.read_table(run.run_dir / "A" / "BuiltinTag.parquet")
    assert table.num_rows == 0
    assert table.column_names[:2] == ["description", "name"]


async def test_ff04_columns_do_not_come_from_the_first_row(tmp_path: Path) -> None:
    rows: Rows = {"tags": [{"id": 1, "name": "a"}, {"id": 2, "name": "b", "description": "late"}]}
    run = await plan(small(tmp_path, rows, [TAGS]), FakeDestination(namespaces=()), tmp_path)
    values = pq.read_table(run.run_dir / "A" / "BuiltinTag.parquet").to_pylist()
    assert [row["description"] for row in values] == [None, "late"]


@pytest.mark.rules("A63", "C37", "C38", "P148", "A79")
async def test_deletes_that_a_flag_hides_are_not_computed_and_that_is_in_the_manifest(tmp_path: Path) -> None:
    with_deletes = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path)
    assert with_deletes.manifest.delete_operations_computed is True
    hidden = small(tmp_path, ROWS, [TAGS, SITES], diffsync_flags=["SKIP_UNMATCHED_DST"])
    without = await plan(hidden, _destination(), tmp_path)
    assert without.manifest.delete_operations_computed is False
    assert without.counts == {"create": 3, "update": 1, "remove": 0, "skip": 0, "none": 1}


async def test_creates_that_a_flag_hides_are_skips_and_so_is_what_needs_them(tmp_path: Path) -> None:
    hidden = small(tmp_path, ROWS, [TAGS, SITES], diffsync_flags=["SKIP_UNMATCHED_SRC"])
    run = await plan(hidden, _destination(), tmp_path)
    assert run.counts == {"create": 0, "update": 0, "remove": 1, "skip": 4, "none": 1}
    lines = _coverage(run)
    assert "SKIP_UNMATCHED_SRC" in str(lines["t1"].reason)
    assert "t1" in str(lines["s"].reason)


@pytest.mark.rules("P145", "C35", "C18")
async def test_deletes_are_recorded_by_set_difference_without_payload(tmp_path: Path) -> None:
    run = await plan(small(tmp_path, ROWS, [TAGS, SITES]), _destination(), tmp_path)
    (delete,) = (op for op in operations(run) if op.action == "delete")
    assert delete.record().keys() == {"action", "identity", "kind", "operation_id", "tier"}


@pytest.mark.rules("A16", "H30", "H31", "H32")
async def test_ff03_plan_apply_plan_is_empty(tmp_path: Path) -> None:
    destination = _destination()
    loaded = small(tmp_path, ROWS, [TAGS, SITES], diffsync_flags=["SKIP_UNMATCHED_DST"])
    destination.apply(operations(await plan(loaded, destination, tmp_path)))
    again = await plan(loaded, destination, tmp_path)
    assert again.manifest.operations_count == 0
    assert (again.run_dir / "plan" / "operations.jsonl").read_bytes() == b""
    assert again.counts["none"] == 5


@pytest.mark.rules("G12")
async def test_g12_no_credential_of_the_configuration_reaches_the_run(tmp_path: Path) -> None:
    secret = "s3cr3t-t0ken-value"
    loaded = small(
        tmp_path,
        ROWS,
        [TAGS, SITES],
        destination={"name": "infrahub", "settings": {"url": "http://u:pw-of-url@x.example", "token": secret}},
    )
    run = await plan(loaded, _destination(), tmp_path)
    for path in run.run_dir.rglob("*"):
        if path.is_file():
            assert secret.encode() not in path.read_bytes()
            assert b"pw-of-url" not in path.read_bytes()
