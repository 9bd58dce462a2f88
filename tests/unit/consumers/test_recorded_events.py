"""Whoever counts what a writer records gets every event that the ledger has of it, and no other."""

from __future__ import annotations

import pytest

from ledger.store.errors import LedgerUnavailableError
from tests.support.committed_plans import tag
from tests.support.writer_bench import Bench


def _counted(bench: Bench) -> list[str]:
    return [event.kind for event in bench.recorded]


async def test_every_event_of_a_run_is_counted_once(bench: Bench) -> None:
    bench.commit([tag("a"), tag("b")])
    assert (await bench.drain()).ending == "run.applied"
    by_others = {"plan.committed", "writer.opened"}
    assert _counted(bench) == [kind for kind in (e.kind for e in bench.ledger.log) if kind not in by_others]
    assert _counted(bench).count("operation.applied") == 2


async def test_a_refused_plan_is_counted(bench: Bench) -> None:
    bench.commit([tag("a")], commit={"plan_checksum": "0" * 64})
    assert (await bench.drain()).ending == "plan.refused"
    assert _counted(bench) == ["plan.refused"]


async def test_what_the_ledger_did_not_take_is_not_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.commit([tag("a")])

    async def refuse(*_: object, **__: object) -> None:
        raise LedgerUnavailableError(checked="x", expected="y", found="z", next_action="w")

    monkeypatch.setattr(bench.ledger, "append", refuse)
    with pytest.raises(LedgerUnavailableError):
        await bench.drain()
    assert _counted(bench) == []
