"""Exports: files that tell and prove the record without its database; changed anywhere, they are found out."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit import Level, Status, VerifyReport, replay_record
from ledger.audit.errors import ExportExistsError, ExportUnreadableError
from ledger.audit.export.layout import ExportManifest, read_manifest
from ledger.audit.export.verifying import verify_export
from ledger.audit.export.writing import export_binding
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.store.ledger import Ledger
from tests.support.forged_exports import cover_up, edit_rows
from tests.support.told_story import CREATED, TOLD_PLANS, UPDATED

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "audit.md"


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as opened:
        yield opened


@pytest.fixture
async def exported(ledger: Ledger, tmp_path: Path) -> Path:
    """The story, with a checkpoint, in row groups of ten events."""
    row = (await ledger.bindings())[0]
    await publish_checkpoint(ledger, row, [KEY])
    row = (await ledger.bindings())[0]
    await export_binding(ledger, row, tmp_path / "export", program="tests", group=10)
    return tmp_path / "export"


def _failed(report: VerifyReport) -> set[Level]:
    return {level.level for level in report.levels if level.status is Status.FAILED}


@pytest.mark.rules("G8", "C40")
async def test_g08_an_export_is_whole_and_proves_itself_with_a_key(exported: Path) -> None:
    report = await verify_export(exported, [KEY.public])
    assert report.findings == ()
    assert {level.level for level in report.levels if level.status is Status.NOT_CHECKED} == {
        Level.ORDERS,
        Level.GUARDS,
        Level.PROJECTIONS,
    }
    assert report.level(Level.CHECKPOINTS).unchecked == []
    assert report.level(Level.PLANS).checked == 4
    without = await verify_export(exported, [])
    assert without.holds
    assert any("no public key" in note for note in without.level(Level.CHECKPOINTS).unchecked)
    groups = pq.ParquetFile(exported / "events.parquet")
    assert groups.num_row_groups == -(-report.events // 10)


async def test_findings_about_files_tell_nobody_to_stop_writers(exported: Path) -> None:
    (exported / "events.ndjson").write_text("")
    findings = (await verify_export(exported, [KEY.public])).findings
    assert {finding.name for finding in findings} >= {"ExportFileMismatch"}
    assert not any("stop the writers" in finding.next_action for finding in findings)


async def test_the_lines_of_an_export_are_those_of_replay(exported: Path, ledger: Ledger) -> None:
    row = (await ledger.bindings())[0]
    told = [replay_record(event) async for event in ledger.events(row.id)]
    lines = (exported / "events.ndjson").read_bytes().split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == told


async def test_an_export_is_never_written_over_something(exported: Path, ledger: Ledger) -> None:
    with pytest.raises(ExportExistsError):
        await export_binding(ledger, (await ledger.bindings())[0], exported, program="tests")


@pytest.mark.rules("C40", "C41", "C42", "C43", "C44", "C45", "C46", "C47")
async def test_plan_parquet_has_a_row_for_each_change_in_the_columns_of_infrahub_sync(exported: Path) -> None:
    path = exported / "plans" / UPDATED.checksum / "plan.parquet"
    rows = pq.read_table(path).to_pylist()
    assert rows[0] == {
        "action": "update",
        "resource": "BuiltinTag",
        "source_id": "red",
        "dest_id": "",
        "attribute": "",
        "old_value": '{"description":"a"}',
        "new_value": '{"description":"warm","name":"red","tags":["x"]}',
        "owner": "",
        "skip_reason": "",
        "conflict_class": "",
    }
    created = pq.read_table(exported / "plans" / CREATED.checksum / "plan.parquet").to_pylist()
    assert {(row["action"], row["old_value"]) for row in created} == {("create", "")}
    # C47: as it stands, with no import step
    found = duckdb.sql(f"select source_id from read_parquet('{path}') where action <> 'create' order by 1").fetchall()
    assert found == [("blue",), ("red",)]


def test_pandas_opens_every_table_unchanged(exported: Path) -> None:
    tables = sorted(path for path in exported.rglob("*.parquet"))
    assert {path.name for path in tables} == {"events.parquet", "runs.parquet", "operations.parquet", "plan.parquet"}
    for path in tables:
        frame = pandas.read_parquet(path)
        stored = pq.read_table(path)
        assert (list(frame.columns), len(frame)) == (stored.column_names, stored.num_rows), path.name
    events = pandas.read_parquet(exported / "events.parquet")
    assert str(events["recorded_at"].dtype) == "datetime64[us, UTC]"
    assert list(events["position"]) == list(range(1, len(events) + 1))


def _sql(name: str) -> str:
    blocks = dict(re.findall(r"```sql ([a-z-]+)\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL))
    assert len(blocks) == 5
    return str(blocks[name])


_TABLES = ("events", "runs", "operations")


def _answers(exported: Path, name: str, **changes: tuple[str, str]) -> list[tuple[Any, ...]]:
    """The rows of a question of the page; ``changes`` replaces texts that stand in it once."""
    text = _sql(name)
    for old, new in changes.values():
        assert text.count(old) == 1
        text = text.replace(old, new)
    for table in _TABLES:
        text = text.replace(f"'{table}.parquet'", f"'{exported / table}.parquet'")
    with duckdb.connect() as connection:
        return [tuple(row.values()) for row in connection.sql(text).to_arrow_table().to_pylist()]


async def test_duckdb_says_who_changed_an_attribute_and_when(exported: Path, ledger: Ledger) -> None:
    answers = _answers(exported, "who-changed")
    assert [(row[2], row[3], row[4], row[5], row[7], row[8]) for row in answers] == [
        ("operation.applied", "netbox", "ada", "first import", None, "a"),
        ("operation.unknown", "library", "bob", "colours of the year", "a", "warm"),
        ("operation.applied", "library", "bob", "colours of the year", "a", "warm"),
        ("operation.unknown", "netbox", "ada", "ticket 7", "warm", "a"),
    ]
    events = {event.position: event.recorded_at async for event in ledger.events((await ledger.bindings())[0].id)}
    assert [row[0].astimezone(UTC) for row in answers] == [events[row[1]] for row in answers]


async def test_duckdb_says_what_failed_in_a_month(exported: Path) -> None:
    month = datetime.now(UTC).strftime("%Y-%m")
    answers = _answers(exported, "failures-of-a-month", **_in_month(month))
    assert [(row[1], row[2], row[6], row[7]) for row in answers] == [
        ("operation.unknown", "library", '{"name":"red"}', "ReadTimeout"),
        ("operation.failed", "library", '{"name":"blue"}', "PeerNotFoundError"),
        ("operation.unknown", "netbox", '{"name":"red"}', "ReadTimeout"),
    ]
    assert _answers(exported, "failures-of-a-month", **_in_month("1999-01")) == []


def _in_month(month: str) -> dict[str, Any]:
    """The question of the page with another month in it: the story is told when the test runs."""
    year, number = map(int, month.split("-"))
    following = f"{year + number // 12}-{number % 12 + 1:02}"
    return {"first": ("2026-11-01", f"{month}-01"), "last": ("2026-12-01", f"{following}-01")}


async def test_duckdb_says_what_a_source_wrote(exported: Path) -> None:
    assert [row[:3] for row in _answers(exported, "written-by-a-source")] == [
        ("BuiltinTag", '{"name":"blue"}', 1),
        ("BuiltinTag", '{"name":"green"}', 1),
        ("BuiltinTag", '{"name":"red"}', 1),
    ]


async def test_duckdb_says_what_was_written_while_somebody_was_the_writer(exported: Path) -> None:
    answers = _answers(exported, "written-while-x-was-the-writer")
    assert sorted((row[2], row[5]) for row in answers) == [
        ("run-create", '{"name":"blue"}'),
        ("run-create", '{"name":"green"}'),
        ("run-create", '{"name":"red"}'),
        ("run-update", '{"name":"red"}'),
    ]


async def test_duckdb_says_which_operations_were_never_attempted(exported: Path) -> None:
    assert _answers(exported, "never-attempted") == [
        ("run-doubt", "netbox", 1, "update", "BuiltinTag", '{"name":"blue"}')
    ]


def _edit_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        path = next(root.glob(name))
        data = path.read_text(encoding="utf-8")
        assert old in data
        path.write_text(data.replace(old, new), encoding="utf-8")

    return edit


def _edit_table(name: str, column: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    def edit(root: Path) -> None:
        edit_rows(next(root.glob(name)), lambda rows: [*rows[:-1], {**rows[-1], column: change(rows[-1][column])}])

    return edit


_EDITS: dict[str, tuple[Callable[[Path], None], Level]] = {
    "an event's body": (
        _edit_table("events.parquet", "body", lambda text: text.replace("tests", "nobody")),
        Level.CHAIN,
    ),
    "a line of events": (_edit_text("events.ndjson", "node-1", "node-9"), Level.TABLES),
    "a line of a plan": (_edit_text(f"plans/{UPDATED.checksum}/operations.jsonl", "warm", "wart"), Level.PLANS),
    "an account": (_edit_text(f"plans/{UPDATED.checksum}/coverage.jsonl", "warm", "wart"), Level.PLANS),
    "the body of a plan": (_edit_text(f"plans/{UPDATED.checksum}/body.json", "v1", "v2"), Level.PLANS),
    "an actor": (_edit_table("runs.parquet", "actor", lambda _: "mallory"), Level.TABLES),
    "a commit": (_edit_table("runs.parquet", "commit", lambda text: text.replace("ada", "eve")), Level.PLANS),
    "a derived value": (_edit_table("operations.parquet", "new_value", lambda _: "{}"), Level.TABLES),
    "a row of plan.parquet": (
        _edit_table(f"plans/{UPDATED.checksum}/plan.parquet", "old_value", lambda _: "{}"),
        Level.TABLES,
    ),
    "the note": (_edit_text("checkpoint.note", "\n— tests ", "\n— texts "), Level.CHECKPOINTS),
    "a plan that is gone": (lambda root: shutil.rmtree(root / "plans" / UPDATED.checksum), Level.PLANS),
    "a file too many": (lambda root: (root / "notes.txt").touch(), Level.FILES),
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize(("edit", "level"), _EDITS.values(), ids=_EDITS)
async def test_g08_an_edit_of_an_export_is_found_by_its_manifest_and_by_what_it_says(
    exported: Path, edit: Callable[[Path], None], level: Level
) -> None:
    edit(exported)
    assert Level.FILES in _failed(await verify_export(exported, [KEY.public]))
    if level is not Level.FILES:
        # whoever edits a file writes its digest anew as well
        cover_up(exported)
        failed = _failed(await verify_export(exported, [KEY.public]))
        assert level in failed
        assert Level.FILES not in failed


@pytest.mark.parametrize("name", ["manifest.json", "events.parquet", "runs.parquet", "operations.parquet"])
async def test_what_cannot_be_read_is_a_named_refusal(exported: Path, name: str) -> None:
    (exported / name).write_bytes(b"PAR1")
    with pytest.raises(ExportUnreadableError):
        await verify_export(exported, [KEY.public])
    (exported / name).unlink()
    with pytest.raises(ExportUnreadableError):
        await verify_export(exported, [KEY.public])


def test_the_manifest_lists_the_plans(exported: Path) -> None:
    manifest: ExportManifest = read_manifest(exported)
    assert manifest.plans == sorted(plan.checksum for plan in TOLD_PLANS)
