"""A destination that is not there: orders wait for it and say so once; a wrong answer is a verdict."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass

import pytest
from structlog.testing import capture_logs

from consumers.infrahub.connection import InfrahubOpener
from consumers.infrahub.errors import DestinationNotAnsweringError
from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from consumers.runs import RunOutcome
from ledger.binding import DestinationBinding
from ledger.destination import DestinationAwayError, DestinationOpener, DispatchGuard, OpenDestination
from ledger.exit_codes import ExitCode
from tests.resources.program import call, plan
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import manufacturer
from tests.support.raw_http import Behaviour, answers, dribbles, hangs, raw_server
from tests.support.real_writer import TOKEN, RealWriter, settings_for
from tests.support.waiting import until, until_true

pytestmark = pytest.mark.integration

GENEROUS = 30.0
"""Seconds; what ends within it would otherwise last for minutes."""


@dataclass
class Elsewhere(DestinationOpener):
    """The real client, led to another address and with another token for as long as a test wants."""

    real: RealWriter
    url: str
    token: str = TOKEN

    def __call__(
        self, binding: DestinationBinding, *, run_id: str, guard: DispatchGuard
    ) -> AbstractAsyncContextManager[OpenDestination]:
        settings = settings_for(self.url, self.real.branch, self.token, self.real.settings.request_timeout)
        return InfrahubOpener(lambda _: settings)(binding, run_id=run_id, guard=guard)


@asynccontextmanager
async def _nobody_listens() -> AsyncIterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@asynccontextmanager
async def _no_such_name() -> AsyncIterator[str]:
    yield "http://no-such-host.invalid"


@asynccontextmanager
async def _black_hole() -> AsyncIterator[str]:
    """A full queue of connections: packets to it are dropped, as by a firewall."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for one in waiting:
            one.close()


@asynccontextmanager
async def _server(behaviour: Callable[[asyncio.Event], Behaviour]) -> AsyncIterator[str]:
    async with raw_server() as server:
        server.behaviours.extend(behaviour(server.ended) for _ in range(10_000))
        yield server.url


def _silent() -> AbstractAsyncContextManager[str]:
    return _server(hangs)


def _byte_by_byte() -> AbstractAsyncContextManager[str]:
    return _server(dribbles)


def _maintenance() -> AbstractAsyncContextManager[str]:
    return _server(lambda _: answers(b"be back soon", "503 Service Unavailable"))


def _too_many_requests() -> AbstractAsyncContextManager[str]:
    return _server(lambda _: answers(b"{}", "429 Too Many Requests"))


Away = Callable[[], AbstractAsyncContextManager[str]]


@pytest.mark.rules("G3", "G10", "G11")
@pytest.mark.parametrize(
    "away",
    [_nobody_listens, _no_such_name, _black_hole, _silent, _byte_by_byte, _maintenance, _too_many_requests],
    ids=lambda f: f.__name__[1:].replace("_", " "),
)
async def test_g10_orders_wait_for_a_destination_that_is_away_and_are_carried_out_when_it_is_back(
    real: RealWriter, away: Away
) -> None:
    real.changes |= {"request_timeout": 0.3, "open_attempts": 1}
    await real.commit("run-1", [manufacturer("first")])
    stop = asyncio.Event()
    async with away() as url:
        opener = Elsewhere(real, url)
        with capture_logs() as logs:
            serving = asyncio.create_task(real.writer(opener).run_until(stop))
            await until(lambda: any(entry["event"] == "orders wait" for entry in logs))
            with pytest.raises(DestinationAwayError) as told:
                await _open(opener, real)
            assert await real.kinds("run-1") == ["plan.committed"]
            opener.url = real.sandbox.url

            async def applied() -> bool:
                return (await real.kinds("run-1"))[-1] == "run.applied"

            await until_true(applied)
            stop.set()
            await serving
    assert len([entry for entry in logs if entry["event"] == "orders wait"]) == 1
    assert told.value.exit_code is ExitCode.BUSY
    assert len(real.sent()) == 1


class _Unguarded:
    async def ready(self) -> None:
        """Go."""

    def before_send(self, *, write: bool = True) -> None:
        """Let it go."""


async def _open(opener: DestinationOpener, real: RealWriter) -> None:
    async with opener(real.binding, run_id="run-1", guard=_Unguarded()):
        pass


@pytest.mark.rules("G11")
async def test_g11_a_wrong_token_and_an_answer_of_another_server_are_verdicts_and_not_waited_for(
    real: RealWriter,
) -> None:
    await real.commit("run-1", [manufacturer("first")])
    refused = await real.writer(Elsewhere(real, real.sandbox.url, token="another")).drain("run-1", by="ada")
    assert (refused.ending, refused.findings[0].name) == ("plan.refused", "DestinationReadError")
    async with _server(lambda _: answers(b"<html>welcome</html>")) as url:
        await real.resume("run-1")
        refused = await real.writer(Elsewhere(real, url)).drain("run-1", by="ada")
    assert (refused.ending, refused.findings[0].name) == ("plan.refused", "DestinationReadError")
    assert real.sent() == []


@pytest.mark.rules("G3", "G4", "G5")
async def test_g05_a_destination_that_goes_away_in_the_middle_leaves_one_operation_in_doubt(real: RealWriter) -> None:
    await real.commit("run-1", [manufacturer(f"m-{number}") for number in range(3)])
    real.sandbox.faults.add(FaultRule(branch=real.branch, nth=2, answer=FaultAnswer.DROP))
    first = await real.writer().drain("run-1", by="ada")
    assert first.exit_code is ExitCode.STOPPED_MAYBE_WRITTEN
    async with _nobody_listens() as url:
        await real.resume("run-1")
        with pytest.raises(DestinationNotAnsweringError):
            await real.writer(Elsewhere(real, url)).drain("run-1", by="ada")
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
    outcomes = [outcome for _, outcome, _ in await real.outcomes("run-1")]
    assert outcomes == ["applied", "unknown", "applied", "applied"]


# --- an end while a destination hangs; request time-outs of minutes, so that what waits for them does not pass


@pytest.mark.rules("G3", "G4")
@pytest.mark.parametrize("ends", ["leave", "interrupted"])
async def test_g03_an_end_does_not_wait_for_a_destination_that_hangs(real: RealWriter, ends: str) -> None:
    """SIGTERM and a time-out leave the run open for others; Ctrl-C of whoever waits for it ends it, unbegun."""
    real.changes |= {"request_timeout": 300.0, "lease_ttl": 600.0}
    await real.commit("run-1", [manufacturer("first")])
    event = asyncio.Event()
    async with raw_server() as server:
        server.behaviours.append(hangs(server.ended))
        writer = real.writer(Elsewhere(real, server.url))
        draining = asyncio.create_task(writer.drain("run-1", by="ada", **{ends: event}))
        await until(lambda: bool(server.requests))
        event.set()
        async with asyncio.timeout(GENEROUS):
            outcome: RunOutcome = await draining
    assert outcome.exit_code is ExitCode.INTERRUPTED
    assert outcome.ending == ("left_open" if ends == "leave" else "plan.refused")
    if ends == "interrupted":
        assert [finding.name for finding in outcome.findings] == ["StoppedBeforeItsStartError"]
        await real.resume("run-1")
    assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"


@pytest.mark.rules("G3", "G10")
async def test_g10_an_order_to_stop_reaches_a_run_that_waits_for_its_destination(real: RealWriter) -> None:
    """Nobody needs the destination to be told that the run is not wanted any more; the next one is carried out."""
    real.changes |= {"poll_interval": 1.0, "open_attempts": 1}  # each opening fails before anybody looks beside it
    await real.commit("run-1", [manufacturer("first")])
    stop = asyncio.Event()
    async with _nobody_listens() as url:
        opener = Elsewhere(real, url)
        serving = asyncio.create_task(real.writer(opener).run_until(stop))
        await real.ledger.submit_stop(await real.binding_id(), run_id="run-1", by="grace", reason="not any more")

        async def refused() -> bool:
            return (await real.kinds("run-1"))[-1] == "plan.refused"

        await until_true(refused)
        assert "grace ended it: not any more" in str(await real.body("run-1", "plan.refused"))
        await real.commit("run-2", [manufacturer("second")])
        opener.url = real.sandbox.url

        async def applied() -> bool:
            return (await real.kinds("run-2"))[-1] == "run.applied"

        await until_true(applied)
        assert await real.ledger.open_orders(await real.binding_id()) == []
        stop.set()
        await serving
    assert len(real.sent()) == 1


def _declare(cli: CommandLine, url: str) -> None:
    """Reach the sandbox under another address, which stands for it from now on."""
    (cli.folder / "apply-ledger.toml").write_text(
        f'[[destination]]\nurl = "{url}"\nbranch = "{cli.branch}"\ntoken_env = "INFRAHUB_API_TOKEN"\n'
        f'aliases = ["{cli.sandbox.url}"]\n',
        encoding="utf-8",
    )


@asynccontextmanager
async def _led_on(port: int, to: str) -> AsyncIterator[None]:
    """A server at ``port`` behind which there is another one."""
    host, _, behind = to.removeprefix("http://").partition(":")

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection(host, int(behind))
        await asyncio.gather(copy(reader, out), copy(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    yield
    server.close()


@pytest.mark.rules("G3", "G11")
async def test_g11_the_command_says_that_the_destination_is_away_and_leaves_the_order(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    planned = await plan(cli)
    cli.variables["APPLY_LEDGER_WRITER__OPEN_ATTEMPTS"] = "1"
    apply = ("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    async with _nobody_listens() as url:
        _declare(cli, url)
        away = await call(cli, *apply)
    assert away.code == ExitCode.BUSY, away.stderr
    assert "stays open" in away.stderr
    async with _led_on(int(url.rpartition(":")[2]), cli.sandbox.url):
        back = await call(cli, *apply)
    assert back.code == ExitCode.DONE, back.stderr
    assert "applied before" not in back.stderr
    assert cli.mutations() == 1


@pytest.mark.rules("G12")
async def test_proxy_variables_of_the_environment_lead_nothing_astray(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    async with _nobody_listens() as nowhere:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            cli.variables |= {name: nowhere, name.upper(): nowhere}
        planned = await plan(cli)
        done = await call(cli, "apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert done.code == ExitCode.DONE, done.stderr
    assert cli.mutations() == 1


@pytest.mark.rules("G4")
async def test_g04_the_service_ends_although_the_destination_hangs(cli: CommandLine) -> None:
    cli.source({"name": "a"})
    planned = await plan(cli)
    cli.variables |= {"APPLY_LEDGER_WRITER__LEASE_TTL": "600", "APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": "300"}
    async with raw_server() as server:
        server.behaviours.append(hangs(server.ended))
        _declare(cli, server.url)
        ordered = await call(cli, "commit", planned["run"], "--expected-checksum", planned["plan_checksum"])
        assert ordered.code == ExitCode.DONE, ordered.stderr
        process = cli.start("work")
        await until(lambda: bool(server.requests))
        process.send_signal(signal.SIGTERM)
        _, stderr = await asyncio.to_thread(process.communicate, timeout=GENEROUS)
    assert process.returncode == ExitCode.DONE, stderr
    assert cli.mutations() == 0
