"""Replay records lose nothing; a report's levels say held, failed or not checked."""

from __future__ import annotations

import json

import pytest

from ledger.audit import Break, LedgerTamperedError, Level, LevelReport, Status, VerifyReport, replay_record
from ledger.audit.report import COUNTS, MAX_FINDINGS, SAYS
from ledger.cli.verification_record import recorded
from ledger.cli.verify_report import print_report
from ledger.exit_codes import ExitCode
from tests.support.events import BRANCH, RUN, URL, EventLog


@pytest.mark.rules("G8")
def test_g08_a_record_holds_every_field_that_is_hashed() -> None:
    log = EventLog()
    event = log.applied(0)
    record = replay_record(event)

    assert record == {
        "url": URL,
        "branch": BRANCH,
        "position": 1,
        "recorded_at": "2026-11-29T12:00:00.001000+00:00",
        "kind": "operation.applied",
        "schema_version": 1,
        "run_id": RUN,
        "operation_id": "op_0000000000000000",
        "ordinal": 0,
        "attempt": 1,
        "writer_epoch": 1,
        "body": json.loads(event.body),
        "event_id": str(event.event_id),
        "prev_hash": "00" * 32,
        "hash": event.hash.hex(),
    }
    json.dumps(record)


@pytest.mark.rules("G8")
@pytest.mark.parametrize(
    ("body", "parsed"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b'{"b":1,"a":2}', {"b": 1, "a": 2}),
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'{"a":NaN}', None),
        (b"not json", None),
        (b"\xff", None),
        (b"[" * 100_000, None),
    ],
    ids=["blank", "order", "twice", "nan", "text", "bytes", "deep"],
)
def test_g08_bytes_that_parsing_would_lose_are_kept_beside(body: bytes, parsed: object) -> None:
    record = replay_record(EventLog().applied(0)._replace(body=body))

    assert record["body_text"] == body.decode("utf-8", errors="backslashreplace")
    if parsed is not None:
        assert record["body"] == parsed
    json.dumps(record["body_text"])


@pytest.mark.rules("G8", "G11")
def test_g11_a_report_names_every_finding_and_leaves_with_nine() -> None:
    levels = {level: LevelReport(level) for level in Level}
    assert set(SAYS) == set(Level)
    assert set(COUNTS) == set(Level)
    report = VerifyReport(URL, BRANCH, 1, bytes(32), 1, tuple(levels.values()))
    report.require_intact()
    assert report.document()["first_break"] is None

    for number in range(MAX_FINDINGS + 5):
        levels[Level.CHAIN].add("ChainHash", checked=f"event {number}", expected="a", found="b", position=900 - number)
    levels[Level.PLANS].add("StoredPlanMismatch", checked="run", expected="a", found="b", position=700)
    levels[Level.GUARDS].add("GuardOffError", checked="triggers", expected="a", found="b")
    assert levels[Level.CHAIN].total == MAX_FINDINGS + 5
    with pytest.raises(LedgerTamperedError) as refused:
        report.require_intact()
    assert refused.value.exit_code is ExitCode.TAMPERED
    assert len(refused.value.findings) == MAX_FINDINGS + 2
    assert report.findings_total == MAX_FINDINGS + 7
    assert report.first_break == Break(900 - MAX_FINDINGS - 4, "ChainHash", Level.CHAIN)
    document = json.loads(json.dumps(report.document()))
    assert [level["status"] for level in document["levels"] if level["level"] == "chain"] == ["failed"]
    assert document["first_break"] == {"position": 696, "kind": "ChainHash", "level": "chain", "after": None}


@pytest.mark.rules("G8")
def test_g08_a_level_holds_only_where_it_came_to_its_end_and_looked_at_something() -> None:
    level = LevelReport(Level.PLANS)
    seen = [level.status]
    level.checked = 1
    seen.append(level.status)
    level.ended()
    seen.append(level.status)
    level.skip("the rest")
    seen.append(level.status)
    level.checked = 0
    seen.append(level.status)
    assert seen == [Status.NOT_CHECKED, Status.NOT_CHECKED, Status.HELD, Status.HELD, Status.NOT_CHECKED]
    nothing = LevelReport(Level.PLANS)
    nothing.ended()
    seen = [nothing.status]
    nothing.add("PlanMismatch", checked="a", expected="b", found="c")
    assert [*seen, nothing.status] == [Status.NOTHING_THERE, Status.FAILED]


def test_what_is_skipped_very_often_is_counted() -> None:
    level = LevelReport(Level.PLANS)
    for number in range(MAX_FINDINGS + 3):
        level.skip(f"run {number}")
    level.ended()
    assert len(level.unchecked) == MAX_FINDINGS + 1
    assert level.unchecked[-1] == "and 3 more"


def test_the_report_for_people_names_the_first_break_the_units_and_what_is_only_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    level = LevelReport(Level.CHAIN, checked=1_234)
    level.ended()
    for number in range(MAX_FINDINGS + 5):
        level.add("ChainHash", checked="event", expected="a", found="b", position=7 + number)
    report = VerifyReport(URL, BRANCH, 9, bytes(32), 9, (level, LevelReport(Level.PLANS)))
    print_report(report, recorded("a ledger", [], {}))
    shown = capsys.readouterr()
    assert "DOES NOT HOLD" in shown.out
    assert "first break: event 7, ChainHash (chain)" in shown.out
    assert "1,234 events" in shown.out
    assert "0 plans" in shown.out
    assert str(MAX_FINDINGS + 5) in shown.out
    assert "and 5 more findings on the level chain" in shown.out
