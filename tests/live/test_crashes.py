"""kill -9 of a real server's API and of its database in the middle of an apply; the run is resumed and ends right."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from ledger.plan.model import PlannedOperation
from tests.live.infrahub import HOME
from tests.live.server.server import InfrahubServer
from tests.live.writing import LiveWriter, create
from tests.support.http_relay import Fate, HttpRelay, Kind
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import many, update

pytestmark = [pytest.mark.live_crash, pytest.mark.timeout(1800)]

MAKERS = 12
PATIENT = {"request_timeout": 20.0, "lease_ttl": 30.0, "settle_seconds": 2.0}
API_BLOWS: dict[str, tuple[Kind, int, float]] = {
    "as it arrives": ("pass", 4, 0.0),
    "in the middle": ("pass", 30, 0.02),
    "when it is written": ("lose answer", 55, 0.0),
}
"""What the relay does with a write, which one of the plan that is, and seconds into the work on it."""
UNDISTURBED = 5
PARTS = (0.5, 0.8, 0.65, 0.9, 0.7, 1.0)
"""Of the usual time of a write: its commit stands near the end."""


@pytest.fixture
async def server() -> AsyncIterator[InfrahubServer]:
    """The server of these tests, which they may kill; it runs again afterwards."""
    if HOME not in os.environ:
        raise RuntimeError("a crash test kills its server, so it needs one of its own: run `make live-crash`")
    server = InfrahubServer(Path(os.environ[HOME]))
    yield server
    await asyncio.to_thread(server.revive)


def changes(writer: LiveWriter) -> list[PlannedOperation]:
    """Creates by key, under ids of ours, and updates by id with sets of peers; 5 for each maker."""
    red, blue = (create(writer.live, "BuiltinTag", name={"value": name}) for name in ("red", "blue"))
    assert blue
    found = []
    for number in range(MAKERS):
        name = f"maker-{number:02}"
        site = create(writer.live, "LocationSite", name={"value": name}, tags=[{"id": red}])
        tags = many("tags", "BuiltinTag", {"name": "blue"}, {"name": "red"})
        found += [
            manufacturer(name),
            device_type(name, f"model of {name}"),
            interface_template(name, f"model of {name}", f"eth0 of {name}"),
            interface_template(name, f"model of {name}", f"eth1 of {name}"),
            update("LocationSite", {"name": name}, {"name": name, "description": "d"}, tags, destination_id=site),
        ]
    return found


def assert_written_once(writer: LiveWriter, operations: list[PlannedOperation]) -> None:
    """The branch holds each object of the plan once, each site with its two tags once."""
    for kind in ("OrganizationManufacturer", "DcimDeviceType", "DcimInterfaceTemplate"):
        planned = sorted(str((op.payload or {})["name"]) for op in operations if op.kind == kind)
        assert writer.names(kind) == planned
    for operation in operations:
        if operation.action == "update":
            site = writer.site(str(operation.destination_id))
            assert (site["description"], site["count"], len(set(site["tags"]))) == ("d", 2, 2)


async def assert_true(writer: LiveWriter, operations: list[PlannedOperation]) -> None:
    """What is called applied is there. Nothing is called unwritten: a server that died proves no such thing."""
    for ordinal, outcome, _ in await writer.outcomes("run-1"):
        assert ordinal is not None
        assert outcome in ("applied", "unknown")
        if outcome == "applied":
            assert writer.holds(operations[ordinal])


async def struck(writer: LiveWriter) -> int | None:
    """Apply until the process that a fate kills is dead; the operation in doubt, None where none was under way."""
    ending = (await writer.writer().drain("run-1", by="ada")).ending
    assert ending == "run.interrupted", "nothing of what was waited for came, or a death was called unwritten"
    ordinal, outcome, _ = (await writer.outcomes("run-1"))[-1]
    assert outcome == "unknown"
    return ordinal if (await writer.body("run-1", "operation.unknown"))["sent"] else None


async def finish(writer: LiveWriter, operations: list[PlannedOperation]) -> None:
    """Resume until the run is applied: a server that has just come back may be too slow, or fail, once more."""
    ending = "run.interrupted"
    while ending == "run.interrupted":
        await writer.resume("run-1")
        ending = (await writer.writer().drain("run-1", by="ada")).ending
        await assert_true(writer, operations)
    assert ending == "run.applied"
    assert_written_once(writer, operations)


def killed(kill: Callable[[], None], *, after: float = 0.0) -> Callable[[], Awaitable[None]]:
    """Kill a process of the server, ``after`` seconds into its work on a mutation."""

    async def strike() -> None:
        await asyncio.sleep(after)  # to strike at another point of the work, and nothing else
        await asyncio.to_thread(kill)

    return strike


@pytest.mark.rules("P127", "P128", "P129", "G3", "G4", "G5", "G6")
@pytest.mark.parametrize(("kind", "ordinal", "after"), API_BLOWS.values(), ids=API_BLOWS)
async def test_ff22_the_api_killed_while_it_works_on_a_write(
    kind: Kind, ordinal: int, after: float, server: InfrahubServer, live_writer: LiveWriter, relay: HttpRelay
) -> None:
    live_writer.changes = dict(PATIENT)
    stored = await live_writer.commit("run-1", changes(live_writer))
    relay.fates += [Fate("pass")] * ordinal + [Fate(kind, strike=killed(server.kill_api, after=after))]
    doubtful = await struck(live_writer)
    assert doubtful is not None, "no write was under way"
    assert doubtful == ordinal or after, "the write that was under way is the one in doubt"
    await asyncio.to_thread(server.start_api)
    if kind == "lose answer":
        assert live_writer.holds(stored[ordinal]), "the server had written it, and nobody heard"
    await assert_true(live_writer, stored)
    await finish(live_writer, stored)


@pytest.mark.rules("P127", "P128", "P129", "G3", "G4", "G5", "G6")
async def test_ff22_the_database_killed_while_it_works_on_a_write(
    server: InfrahubServer, live_writer: LiveWriter, relay: HttpRelay
) -> None:
    """Its errors come as HTTP 200 and may hide a committed write; none of them may be called unwritten.

    Whether one hides a write is chance: it is looked for at some points of the work, and required where the API is
    killed, who can be stopped between the write and its answer.
    """
    live_writer.changes = dict(PATIENT)
    stored = await live_writer.commit("run-1", changes(live_writer))
    relay.fates += [Fate("pass")] * UNDISTURBED
    struck_at = 0
    for turn, part in enumerate(PARTS):
        if turn:
            relay.fates = deque([Fate("pass")])  # the repetition of what is in doubt
            await live_writer.resume("run-1")
        after = part * await usual_seconds(live_writer)
        relay.fates.append(Fate("pass", strike=killed(server.kill_database, after=after)))
        doubtful = await struck(live_writer)
        await asyncio.to_thread(server.start_database)
        await assert_true(live_writer, stored)
        struck_at += doubtful is not None
        if doubtful is not None and live_writer.holds(stored[doubtful]):
            break
    assert struck_at, "no write was under way"
    await finish(live_writer, stored)


async def usual_seconds(writer: LiveWriter) -> float:
    """How long a write took so far."""
    applied = [json.loads(event.body) for event in await writer.events("run-1") if event.kind == "operation.applied"]
    return statistics.median(body["duration_ms"] for body in applied) / 1000 if applied else 0.05
