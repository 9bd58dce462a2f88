"""FF33: every wait for the ledger ends in a named error, and no request leaves whose outcome could not be recorded."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from consumers.errors import LeaseLostError
from consumers.infrahub.sandbox import FaultRule
from consumers.pauses import PausePoint
from consumers.worker import Worker
from ledger.exit_codes import ExitCode
from ledger.store.connect import Limits
from ledger.store.errors import LedgerBusyError, LedgerUnavailableError, StoreError
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from ledger.store.session import Session
from ledger.store.writer import WriterStore
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import manufacturer
from tests.support.postgres_relay import PostgresRelay, relay_to
from tests.support.real_writer import RealWriter
from tests.support.store import connection_to
from tests.support.writer_bench import Pauses

pytestmark = pytest.mark.integration

GENEROUS = 30.0
"""Seconds after which a wait counts as endless here; nothing waits for so long."""

SHORT = Limits(open=0.2, connect=0.5, acquire=0.1, lock=0.2, statement=0.4, grace=0.1)


@pytest.mark.rules("G4", "G11")
async def test_ff33_a_pool_of_one_and_a_call_inside_another_use_of_it(real: RealWriter) -> None:
    """Reading page by page holds no connection while the reader works; what would wait for itself is told so."""
    await real.commit("run-1", [manufacturer("first")])
    async with await Ledger.open(
        real.dsn, connections=1, limits=SHORT, ask_again_for=0.2, allow_unsafe_fsync=True
    ) as ledger:
        binding_id = await real.binding_id()
        async with asyncio.timeout(GENEROUS):
            assert [await ledger.binding(real.binding) is not None async for _ in ledger.events(binding_id)]
    session = await Session.open(
        real.dsn,
        application_name="a pool of one",
        limits=SHORT,
        connections=1,
        ask_again_for=0.2,
        allow_unsafe_fsync=True,
    )

    async def inner(_: object) -> object:
        return await session.rows("bindings", None, None, None)

    async with asyncio.timeout(GENEROUS):
        with pytest.raises(LedgerUnavailableError) as refused:
            await session.run(inner, doing="a call inside another")
        assert refused.value.exit_code is ExitCode.BUSY
        assert await session.rows("bindings", None, None, None)
        await session.close()


Opened = Callable[[str], Awaitable[object]]


async def _open_ledger(dsn: str) -> object:
    return await Ledger.open(dsn, limits=SHORT, ask_again_for=0.2, allow_unsafe_fsync=True)


async def _open_writer(dsn: str) -> object:
    return await WriterStore.open(dsn, limits=SHORT, ask_again_for=0.2, allow_unsafe_fsync=True)


async def _open_projections(dsn: str) -> object:
    return await ProjectionStore.open(dsn, limits=SHORT, allow_unsafe_fsync=True)


@asynccontextmanager
async def _silent(dsn: str) -> AsyncIterator[str]:
    """A server that takes connections and says nothing, and the DSN that leads to it."""
    never = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()
        writer.close()

    async with relay_to(dsn) as (_, through):
        parts = urlsplit(through)
        folder = Path(parse_qs(parts.query)["host"][0])
        [socket] = folder.iterdir()
        socket.unlink()
        server = await asyncio.start_unix_server(serve, path=str(socket))
        yield through
        never.set()
        server.close()


@pytest.mark.rules("G11", "G12")
@pytest.mark.parametrize("opened", [_open_ledger, _open_writer, _open_projections], ids=lambda f: f.__name__[1:])
@pytest.mark.parametrize("trouble", ["nobody listens", "nobody answers"])
async def test_ff33_a_database_that_is_not_there_is_named_in_time(
    real: RealWriter, opened: Opened, trouble: str
) -> None:
    async with _silent(real.dsn) as silent:
        target = silent if trouble == "nobody answers" else silent.replace("relay-", "nowhere-")
        async with asyncio.timeout(GENEROUS):
            with pytest.raises(LedgerUnavailableError) as refused:
                await opened(target)
    assert refused.value.exit_code is ExitCode.BUSY
    assert "test-only" not in str(refused.value)


async def _away(relay: PostgresRelay) -> None:
    while True:
        relay.arm("lose request")
        await relay.met.wait()


@pytest.mark.rules("G4", "G5")
@pytest.mark.parametrize("point", [PausePoint.AFTER_RUN_STARTED, PausePoint.BEFORE_GATE], ids=str)
async def test_ff33_no_request_leaves_whose_outcome_could_not_be_recorded(real: RealWriter, point: PausePoint) -> None:
    await real.commit("run-1", [manufacturer("first"), manufacturer("second")])
    pauses, trouble = Pauses(), []
    async with relay_to(real.dsn) as (relay, dsn):

        async def go_away() -> None:
            trouble.append(asyncio.create_task(_away(relay)))

        pauses.actions[point] = go_away
        async with asyncio.timeout(GENEROUS):
            with pytest.raises((StoreError, LeaseLostError)) as refused:
                await real.writer(dsn=dsn, pause=pauses).drain("run-1", by="ada")
        assert refused.value.exit_code is ExitCode.BUSY
        assert real.sent() == []
        trouble[0].cancel()
    row = await real.ledger.binding(real.binding)
    assert row is not None
    assert row.in_flight is None


@pytest.mark.rules("G4")
async def test_ff33_cancelled_waits_leak_no_connection_and_do_not_hold_up_the_end(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    await real.commit("run-1", [manufacturer("first")])
    limits = Limits(acquire=5.0, lock=5.0)
    ledger = await Ledger.open(real.dsn, connections=2, limits=limits, allow_unsafe_fsync=True)
    binding_id = await real.binding_id()
    async with connection_to(postgres18_ledger_dsns["admin"]) as holder:
        lock = holder.transaction()
        await lock.start()
        await holder.execute("lock table ledger.inbox in access exclusive mode")
        waiting = [asyncio.create_task(ledger.open_orders(binding_id)) for _ in range(12)]
        for turns, task in enumerate(waiting):
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
        async with asyncio.timeout(GENEROUS):
            ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(end) for end in ended} == {asyncio.CancelledError}
        await lock.rollback()
    async with asyncio.timeout(GENEROUS):
        assert len(await asyncio.gather(*(ledger.open_orders(binding_id) for _ in range(6)))) == 6
        await ledger.close()


@pytest.mark.rules("G4")
async def test_ff33_a_lock_that_is_not_given_back_ends_the_wait(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    binding_id = await real.binding_id()
    async with (
        await WriterStore.open(real.dsn, limits=SHORT, ask_again_for=0.2, allow_unsafe_fsync=True) as writer,
        connection_to(postgres18_ledger_dsns["admin"]) as holder,
        holder.transaction(),
    ):
        await holder.execute("select from ledger.binding for update")
        async with asyncio.timeout(GENEROUS):
            with pytest.raises(LedgerBusyError) as refused:
                await writer.claim(
                    binding_id, owner="me", ttl=60, settle=0, body_host="host", body_process_id="process"
                )
    assert refused.value.exit_code is ExitCode.BUSY


@pytest.mark.rules("G3", "G4")
async def test_ff33_told_to_end_while_the_ledger_is_away_it_ends(real: RealWriter) -> None:
    """What was in flight keeps its mark; the next writer records it."""
    await real.commit("run-1", [manufacturer("first"), manufacturer("second")])
    stop = asyncio.Event()
    held = real.sandbox.faults.add(FaultRule(branch=real.branch, hold="before-answer"))
    async with relay_to(real.dsn) as (relay, dsn):
        serving = asyncio.create_task(Worker([real.writer(dsn=dsn)]).run_until(stop))
        assert await asyncio.to_thread(held.wait_reached, 30.0)
        trouble = asyncio.create_task(_away(relay))
        held.release()
        stop.set()
        async with asyncio.timeout(GENEROUS):
            await serving
        trouble.cancel()
    assert len(real.sent()) == 1


@pytest.mark.rules("G3", "G4", "P143")
def test_ff33_sigterm_with_work_in_hand_records_it_although_the_destination_is_silent(
    cli: CommandLine, service: subprocess.Popen[str]
) -> None:
    """The answer never comes: the request has its limit, and the service ends after it, with a record."""
    cli.source(*({"name": name} for name in ("first", "second", "third")))
    planned = cli.plan()
    held = cli.sandbox.faults.add(FaultRule(branch=cli.branch, nth=2, hold="before-answer"))
    assert cli.run("commit", planned["run"], "--expected-checksum", planned["plan_checksum"]).returncode == 0
    assert held.wait_reached(60)
    service.send_signal(signal.SIGTERM)
    assert service.wait(timeout=GENEROUS) == 0
    held.release()
    shown = json.loads(cli.run("runs", "show", planned["run_id"], "--output", "json").stdout)
    assert (shown["state"], shown["applied"], shown["unknown"], shown["not_attempted"]) == ("interrupted", 1, 1, 1)
    assert cli.mutations() == 2
