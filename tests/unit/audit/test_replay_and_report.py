"""Replay records lose nothing; a report's levels say held, failed or not checked."""

from __future__ import annotations

import json

import pytest

from ledger.audit import LedgerTamperedError, Level, LevelReport, Status, VerifyReport, replay_record
from ledger.audit.report import MAX_FINDINGS, SAYS
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
    levels[Level.CHECKPOINTS].unchecked.append("nothing to compare with")
    report = VerifyReport(URL, BRANCH, 1, bytes(32), 1, tuple(levels.values()))
    report.require_intact()
    assert levels[Level.CHECKPOINTS].status is Status.NOT_CHECKED

    for number in range(MAX_FINDINGS + 5):
        levels[Level.CHAIN].add("ChainHash", checked=f"event {number}", expected="a", found="b")
    assert levels[Level.CHAIN].total == MAX_FINDINGS + 5
    with pytest.raises(LedgerTamperedError) as refused:
        report.require_intact()
    assert refused.value.exit_code is ExitCode.TAMPERED
    assert len(refused.value.findings) == MAX_FINDINGS
    document = json.loads(json.dumps(report.document()))
    assert [level["status"] for level in document["levels"] if level["level"] == "chain"] == ["failed"]
