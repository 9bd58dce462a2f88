"""One run in words: its state, what happened to it, what is in flight and what waits."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.cli.run_display import ATTEMPT_LIMIT, STEP_LIMIT, print_run
from tests.support.run_documents import run_document

WRITER = {"host": "there", "since": "2026-11-30T02:52:00.000000+00:00", "epoch": 3}


def _told(capsys: pytest.CaptureFixture[str], **changes: Any) -> list[str]:
    print_run(run_document(**changes))
    return capsys.readouterr().out.splitlines()


def _step(position: int, what: str, **texts: str) -> dict[str, Any]:
    empty = dict.fromkeys(("by", "reason", "policy", "detail"))
    return {"position": position, "what": what, "at": "2026-11-30T02:52:00.123456+00:00", **empty, **texts}


def _operation(ordinal: int, *outcomes: str) -> dict[str, Any]:
    attempts = [
        {"attempt": number, "outcome": outcome, "position": 10 + number, "error": None if outcome == "applied" else "E"}
        for number, outcome in enumerate(outcomes, 1)
    ]
    return {"operation_id": f"op_{ordinal}", "ordinal": ordinal, "attempts": attempts}


@pytest.mark.parametrize(
    ("changes", "head", "line"),
    [
        ({"state": "open", "running": True, "writer": WRITER}, "running  source", "written by there, which holds"),
        ({"state": "open", "running": True}, "open  source", "no process writes it now"),
        ({"running": True, "writer": WRITER}, "running again; it was stopped before  source", "written by there"),
        ({"running": True}, "open again; it was stopped before  source", "no process writes it now"),
    ],
)
def test_a_run_that_goes_on_is_running_only_while_somebody_writes_it(
    capsys: pytest.CaptureFixture[str], changes: dict[str, Any], head: str, line: str
) -> None:
    first, *others = _told(capsys, **changes)
    assert head in first
    assert any(line in other for other in others)


@pytest.mark.rules("G5")
def test_g05_what_was_in_flight_when_its_writer_ended_is_named_as_maybe_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    mark = {"in_flight": {"ordinal": 7073, "attempt": 2}}
    alone = " ".join(_told(capsys, state="open", running=True, **mark))
    assert "in flight: operation 7,073, attempt 2, counted as not attempted; it may have been written" in alone
    assert "in flight" not in " ".join(_told(capsys, state="open", running=True, writer=WRITER, **mark))


def test_how_far_a_running_run_is_and_how_long_it_takes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    pace = {"operations_per_second": 84.6, "seconds_to_go": 1200}
    told = " ".join(_told(capsys, state="open", running=True, writer=WRITER, progress=pace))
    assert "since 2026-11-30T02:52:00Z · 85/s, about 1,200 s to go" in told


def test_an_order_that_is_being_carried_out_waits_no_more_but_a_stop_does(capsys: pytest.CaptureFixture[str]) -> None:
    orders = [
        {"kind": kind, "by": by, "reason": reason, "received_at": "2026-11-30T02:52:00+00:00"}
        for kind, by, reason in (("resume", "ana", ""), ("stop", "jo", "freeze"))
    ]
    waits = [line for line in _told(capsys, running=True, writer=WRITER, open_orders=orders) if "waiting" in line]
    assert waits == ["  waiting: stop, ordered 2026-11-30T02:52:00Z by jo: freeze"]
    waits = [line for line in _told(capsys, open_orders=orders) if "waiting" in line]
    assert waits[0] == "  waiting: resume, ordered 2026-11-30T02:52:00Z by ana"
    assert len(waits) == 2


def test_what_happened_is_told_oldest_first_and_cut_at_the_old_end(capsys: pytest.CaptureFixture[str]) -> None:
    steps = [_step(number, "resumed", by="ana", detail="from operation 3 on") for number in range(STEP_LIMIT + 2)]
    steps.append(_step(2000, "stopped", by="jo\x1b[2J", reason="freeze"))
    told = [line for line in _told(capsys, happened=steps) if "event" in line and "2026" in line]
    assert len(told) == STEP_LIMIT
    assert told[0].endswith("event     3  from operation 3 on, by ana")
    assert told[-1] == "  stopped      2026-11-30T02:52:00Z  event 2,000  by jo\\u001b[2J: freeze"


def test_events_of_others_in_between_are_no_events_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    mixed = " ".join(_told(capsys, committed_position=9147, position=20714, events=68))
    assert "ledger positions 9,147 to 20,714 (68 events of this run, 11,500 of others between them)" in mixed
    assert "of others" not in " ".join(_told(capsys))


@pytest.mark.rules("G3")
def test_g03_each_attempt_at_what_did_not_succeed_at_once_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    operations = [_operation(1, "unknown", "applied"), _operation(2, "failed"), _operation(3, "unknown")]
    told = " ".join(_told(capsys, attempts=operations, failed_operation="op_3"))
    assert "operation 1 (op_1): attempt 1 unknown (E, event 11), attempt 2 applied (event 12)" in told
    assert "operation 2 (op_2): attempt 1 failed (E, event 11)" in told
    assert "operation 3 (" not in told  # its only attempt is the failure that is told anyway
    many = _told(capsys, attempts=[_operation(number, "unknown", "applied") for number in range(ATTEMPT_LIMIT + 3)])
    assert any("and 3 more; --output json has them" in line for line in many)
