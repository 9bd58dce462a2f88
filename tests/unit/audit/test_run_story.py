"""What is told of the events of a run as a whole, whatever their bodies hold."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ledger.audit.run_story import policy_words, steps
from ledger.store.pages import RunMark

AT = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def _mark(kind: str, body: Any) -> RunMark:
    return RunMark(position=7, kind=kind, recorded_at=AT, body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("kind", "body", "word", "by", "reason", "detail"),
    [
        ("plan.committed", {"commit": {"actor": "jo", "reason": "CHG-1"}}, "committed", "jo", "CHG-1", ""),
        ("run.started", {"by": None, "reason": None}, "started", "", "", ""),
        ("run.started", {"by": "ana", "reason": "new token"}, "started", "ana", "new token", ""),
        ("run.resumed", {"by": "ana", "from_ordinal": 7073}, "resumed", "ana", "", "from operation 7,073 on"),
        ("run.stopped", {"by": "ana", "last_ordinal": 4}, "stopped", "ana", "", "after operation 4"),
        ("run.stopped", {"by": "ana", "last_ordinal": None}, "stopped", "ana", "", ""),
        ("run.failed", {"failed_operation": "op_1", "last_ordinal": 4}, "failed", "", "", "at operation 4 (op_1)"),
        ("run.applied", {"failed_operation": None, "last_ordinal": 4}, "applied", "", "", ""),
        ("plan.refused", {"findings": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}, "refused", "", "", "A, B"),
        ("plan.refused", {"findings": [{"name": 1}, "x"], "by": 3}, "refused", "", "", ""),
        ("run.paused", ["of", "a", "newer", "program"], "run.paused", "", "", ""),
    ],
)
def test_a_step_says_what_its_event_says(kind: str, body: Any, word: str, by: str, reason: str, detail: str) -> None:
    (step,) = steps([_mark(kind, body)])
    assert (step.position, step.at) == (7, AT)
    assert (step.word, step.by, step.reason, step.detail) == (word, by, reason, detail)


def test_a_policy_is_told_in_a_line() -> None:
    assert policy_words({"on_unknown": "stop", "allow_stale": True, "allow_other": False}) == (
        "on unknown stop, allow stale"
    )
    assert policy_words("stop") == ""
