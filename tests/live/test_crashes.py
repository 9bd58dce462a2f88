"""kill -9 of a real server's API and of its database in the middle of an apply; the run is resumed and ends right."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ledger.plan.model import PlannedOperation
from tests.live.infrahub import HOME
from tests.live.server.server import InfrahubServer
from tests.live.writing import LiveWriter, create
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.operations import many, update
from tests.support.waiting import until_true

pytestmark = [pytest.mark.live_crash, pytest.mark.timeout(1800)]

MAKERS = 12
TURNS = {"early": 4, "in the middle": 30, "late": 55}
"""After how many outcomes the process is killed; whatever is under way then is lost."""


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
    """Whatever is recorded so far is true: what is called applied is there, what is called unwritten is not."""
    for ordinal, outcome, _ in await writer.outcomes("run-1"):
        assert ordinal is not None
        assert outcome in ("applied", "failed", "unknown")
        if outcome != "unknown":
            assert writer.holds(operations[ordinal]) is (outcome == "applied")


async def killed_and_resumed(
    writer: LiveWriter, kill: Callable[[], None], start: Callable[[], None], *, after: int
) -> None:
    """Kill after some outcomes, start again, resume until the run is applied."""
    stored = await writer.commit("run-1", changes(writer))
    applying = asyncio.create_task(writer.writer().drain("run-1", by="ada"))

    async def far_enough() -> bool:
        return len(await writer.outcomes("run-1")) >= after

    await until_true(far_enough)
    await asyncio.to_thread(kill)
    ending: str = (await applying).ending
    assert ending in ("run.interrupted", "run.failed")
    await asyncio.to_thread(start)
    await assert_true(writer, stored)
    while ending != "run.applied":
        await writer.resume("run-1")
        ending = (await writer.writer().drain("run-1", by="ada")).ending
    assert_written_once(writer, stored)


@pytest.mark.rules("P55", "P65", "P127", "P128", "P129", "G3", "G4", "G5", "G6")
@pytest.mark.parametrize("moment", TURNS)
async def test_ff22_the_api_killed_in_the_middle_of_an_apply(
    moment: str, server: InfrahubServer, live_writer: LiveWriter
) -> None:
    live_writer.changes = {"request_timeout": 20.0, "lease_ttl": 30.0, "settle_seconds": 2.0}
    await killed_and_resumed(live_writer, server.kill_api, server.start_api, after=TURNS[moment])


@pytest.mark.rules("P127", "P128", "P129", "G3", "G4", "G5", "G6")
@pytest.mark.parametrize("moment", TURNS)
async def test_ff22_the_database_killed_in_the_middle_of_an_apply(
    moment: str, server: InfrahubServer, live_writer: LiveWriter
) -> None:
    """Its errors come as HTTP 200 and may hide a committed write; none of them may be called unwritten."""
    live_writer.changes = {"request_timeout": 20.0, "lease_ttl": 30.0, "settle_seconds": 2.0}
    await killed_and_resumed(live_writer, server.kill_database, server.start_database, after=TURNS[moment])
