"""Hints of orders: heard by whoever listens, sent behind the commit, and nothing is lost where they are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from ledger.store.connect import Limits
from ledger.store.doorbell import CHANNEL, Doorbell, Ringer
from ledger.store.errors import LedgerUnavailableError
from ledger.store.ledger import Ledger
from tests.support.postgres_relay import relay_to
from tests.support.store import make_commit
from tests.support.waiting import until

pytestmark = [pytest.mark.integration]

_END_LISTENERS = (
    "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'apply-ledger doorbell'"
    " and datname = current_database()"
)

_MESSAGES_OF_A_LOGIN = 3
"""Of the client: its start, and two of SCRAM."""


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
        rung = bell.of(binding_id)
        async with await Ledger.open(ledger_dsns["writer"], allow_unsafe_fsync=True) as brief:
            await brief.submit_commit(binding_id, make_commit("run-1", "1" * 64))
        await rung.wait()


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


@pytest.mark.rules("G11")
async def test_a_hint_that_fails_by_a_defect_is_told_and_keeps_nobody_from_closing(
    ledger_dsns: dict[str, str], binding_id: int
) -> None:
    async def send(_bindings: list[int]) -> None:
        raise LookupError("a defect")

    with capture_logs() as logs:
        async with await Ledger.open(ledger_dsns["writer"], allow_unsafe_fsync=True) as brief:
            brief._session.ringer = Ringer(send)
            await brief.submit_commit(binding_id, make_commit("run-1", "1" * 64))
    assert brief._session._pool._closed
    assert [(line["log_level"], line["exc_info"]) for line in logs] == [("error", True)]


async def test_who_is_cancelled_while_the_last_hint_is_sent_closes_all_the_same(
    ledger_dsns: dict[str, str], binding_id: int
) -> None:
    sending = asyncio.Event()

    async def send(_bindings: list[int]) -> None:
        sending.set()
        await asyncio.Event().wait()

    brief = await Ledger.open(ledger_dsns["writer"], allow_unsafe_fsync=True)
    brief._session.ringer = Ringer(send)
    brief._session.ringer.ring(binding_id)
    closing = asyncio.create_task(brief.close())
    await sending.wait()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert brief._session._pool._closed


async def test_hints_of_what_nobody_waits_for_are_left_alone(
    ledger_dsns: dict[str, str], binding_id: int, admin: Any
) -> None:
    """Every role may notify."""
    broken: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: broken.append(context))
    async with listening(ledger_dsns) as bell:
        rung = bell.of(binding_id)
        for payload in (*map(str, range(100_000, 100_100)), "9" * 7_000, "", "\u0661", "-1", f"0{binding_id}"):
            await admin.execute("select pg_notify($1, $2)", CHANNEL, payload)
        assert not rung.is_set()
        await admin.execute("select pg_notify($1, $2)", CHANNEL, str(binding_id))
        await rung.wait()
        assert (len(bell._events), broken) == (1, [])


async def test_a_server_that_falls_silent_before_it_listens_is_tried_again(ledger_dsns: dict[str, str]) -> None:
    limits, stop = Limits(statement=0.2, grace=0.0), asyncio.Event()
    async with relay_to(ledger_dsns["writer"]) as (relay, dsn):
        bell = Doorbell(dsn, look_every=0.05, limits=limits)
        relay.arm("hold", after=_MESSAGES_OF_A_LOGIN)
        task = asyncio.create_task(bell.run_until(stop))
        await relay.met.wait()
        await until(lambda: bell.is_heard)
        assert relay.accepted == 2
        stop.set()
        await task
