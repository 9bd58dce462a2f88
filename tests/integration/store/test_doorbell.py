"""Hints of orders: heard by whoever listens, sent behind the commit, and nothing is lost where they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ledger.store.doorbell import Doorbell, Ringer
from ledger.store.errors import LedgerUnavailableError
from ledger.store.ledger import Ledger
from tests.support.store import make_commit
from tests.support.waiting import until

pytestmark = [pytest.mark.integration]

_END_LISTENERS = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'apply-ledger doorbell'"
    " and datname = current_database()"
)


@asynccontextmanager
async def listening(dsns: dict[str, str]) -> AsyncIterator[Doorbell]:
    bell, stop = Doorbell(dsns["writer"], look_every=0.2), asyncio.Event()
    task = asyncio.create_task(bell.run_until(stop))
    try:
        await until(lambda: bell.is_heard)
        yield bell
    finally:
        stop.set()
        await task


async def test_g10_an_order_is_heard_by_another_connection(
    ledger_dsns: dict[str, str], ledger: Ledger, binding_id: int
) -> None:
    async with listening(ledger_dsns) as bell:
        rung, other = bell.of(binding_id), bell.of(binding_id + 1)
        await ledger.submit_commit(binding_id, make_commit("run-1", "1" * 64))
        await rung.wait()
        rung.clear()
        await ledger.submit_stop(binding_id, run_id="run-1", by="ada", reason="enough")
        await rung.wait()
        assert not other.is_set()


async def test_g10_who_leaves_at_once_has_rung_before(ledger_dsns: dict[str, str], binding_id: int) -> None:
    """A command that commits ends right afterwards."""
    async with listening(ledger_dsns) as bell:
        async with await Ledger.open(ledger_dsns["writer"], allow_unsafe_fsync=True) as brief:
            await brief.submit_commit(binding_id, make_commit("run-1", "1" * 64))
        await bell.of(binding_id).wait()


async def test_g10_a_lost_connection_is_made_anew_and_what_came_meanwhile_is_looked_for(
    ledger_dsns: dict[str, str], admin: Any, binding_id: int
) -> None:
    async with listening(ledger_dsns) as bell:
        rung = bell.of(binding_id)
        assert await admin.fetchval(_END_LISTENERS) == 1
        await rung.wait()
        assert bell.is_heard


async def test_a_burst_is_told_in_few_statements_and_a_lost_hint_is_no_error() -> None:
    sent: list[list[int]] = []

    async def send(bindings: list[int]) -> None:
        sent.append(bindings)
        if len(sent) == 1:
            raise LedgerUnavailableError(checked="x", expected="x", found="x", next_action="x")

    ringer = Ringer(send)
    for number in range(100):
        ringer.ring(number % 3)
    await until(lambda: len(sent) == 1)
    ringer.ring(7)
    await ringer.close()
    assert sent == [[0, 1, 2], [7]]
