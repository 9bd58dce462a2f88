"""Two commands that follow each other fetch the destination's schema once; the cache is the user's own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.support.command_here import CommandHere
from tests.support.command_line import TOKEN, CommandLine
from tests.support.http_relay import HttpRelay, http_relay

SUMMARY, SCHEMA = "/api/schema/summary", "/api/schema"


def asked(relay: HttpRelay) -> list[str]:
    """Paths of what was fetched, without their queries; what was sent to GraphQL is left out."""
    paths = [request.split(b" ", 2)[1].decode().partition("?")[0] for request in relay.requests]
    return [path for path in paths if not path.startswith("/graphql")]


@pytest.mark.rules("P18")
async def test_apply_takes_the_schema_that_plan_fetched(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "red"}, {"name": "blue"})
    plan = ("plan", "--config-file", "config.yml", "--output", "json")
    async with http_relay(cli.sandbox.url) as relay:
        done = await asyncio.to_thread(here.run, *plan, INFRAHUB_ADDRESS=relay.url)
        planned = json.loads(done.stdout)
        assert asked(relay) == [SUMMARY, SCHEMA]
        apply = ("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
        cli.variables["INFRAHUB_ADDRESS"] = relay.url
        applied = await asyncio.to_thread(cli.run, *apply)  # a process: it takes signals, which a thread cannot
        assert applied.returncode == 0, applied.stderr
        assert asked(relay) == [SUMMARY, SCHEMA, SUMMARY]
        again = await asyncio.to_thread(here.run, *plan, INFRAHUB_ADDRESS=relay.url)
        assert json.loads(again.stdout)["operations_count"] == 0
        assert asked(relay) == [SUMMARY, SCHEMA, SUMMARY, SUMMARY]
    (kept,) = (cli.folder / "cache" / "apply-ledger" / "schemas").iterdir()
    assert kept.parent.stat().st_mode & 0o077 == 0
    assert TOKEN.encode() not in kept.read_bytes()


@pytest.mark.rules("P18")
async def test_without_a_place_for_it_the_schema_is_fetched_each_time(cli: CommandLine, here: CommandHere) -> None:
    cli.source({"name": "red"})
    occupied = cli.folder / "occupied"
    occupied.write_text("")
    async with http_relay(cli.sandbox.url) as relay:
        variables = {"INFRAHUB_ADDRESS": relay.url, "XDG_CACHE_HOME": str(occupied)}
        for _ in range(2):
            done = await asyncio.to_thread(here.run, "plan", "--config-file", "config.yml", **variables)
            assert done.returncode == 0, done.stderr
        assert asked(relay) == [SUMMARY, SCHEMA] * 2
    assert Path(occupied).read_text() == ""
