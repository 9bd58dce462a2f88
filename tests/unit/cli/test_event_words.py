"""What a table of events says of each: who, why, where; whatever somebody put into a body."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.cli.event_words import event_words


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (
            "writer.opened",
            {"epoch": 1, "process_id": "5f0c", "host": "vm", "role": "ledger_writer"},
            "host vm, process 5f0c, role ledger_writer",
        ),
        (
            "plan.committed",
            {"commit": {"source": "netbox", "actor": "ada", "reason": "CHG-1", "run_id": "r"}},
            "source netbox, actor ada, reason CHG-1",
        ),
        (
            "run.started",
            {"source": "netbox", "by": "eve", "reason": "renewed"},
            "source netbox, by eve, reason renewed",
        ),
        ("run.resumed", {"by": "eve", "reason": "looked\nat it"}, r"by eve, reason looked\u000aat it"),
        ("plan.refused", {"findings": [{"name": "StaleError"}], "by": "eve"}, "StaleError; by eve"),
        ("operation.applied", {"node_id": "18000b68", "sent_ms": 1}, "node 18000b68"),
        ("operation.unknown", {"error": "ReadTimeout", "message": "long"}, "error ReadTimeout"),
        ("checkpoint.published", {"position": 9, "keys": ["audit"]}, "events up to 9, signed by audit"),
        ("run.applied", {"applied": 3}, ""),
        ("plan.committed", {"commit": 7}, ""),
        ("plan.refused", {"findings": [1, {"name": 2}], "by": None}, ""),
        ("checkpoint.published", {"keys": 3}, "events up to None, signed by ?"),
        ("operation.applied", None, ""),
        ("operation.applied", [1], ""),
    ],
)
def test_an_event_is_told_in_words(kind: str, body: Any, words: str) -> None:
    assert event_words(kind, body) == words
