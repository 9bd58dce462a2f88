"""The same guarantees where the calls really come at once, over connections of their own."""

from __future__ import annotations

import asyncio
import itertools
import random
from contextlib import AsyncExitStack
from typing import Any

import pytest

from ledger.binding import DestinationBinding
from ledger.store.ledger import Ledger
from tests.state_machine.race import Contestant, Track, commit_both_runs, time_passes
from tests.state_machine.tables import Tables, check_guarantees
from tests.support.store import connection_to, open_writer

pytestmark = pytest.mark.integration

CONTESTANTS = 3
ROUNDS = 15


def _as_appended(tables: Tables, track: Track) -> None:
    """What stands under an epoch is what its holder was answered for, where it was answered."""
    answered: dict[int, list[tuple[int, object]]] = {lease.epoch: [] for lease in track.leases}
    for lease, events, appended in track.appended:
        places = range(appended.first_position, appended.last_position + 1)
        answered[lease.epoch] += list(zip(places, (event.event_id for event in events), strict=True))
    for epoch, expected in answered.items():
        stored = [
            (event.position, event.event_id)
            for event in tables.events
            if event.writer_epoch == epoch and event.kind != "writer.opened"
        ]
        assert stored == expected, f"G2: what was recorded under epoch {epoch}"
    opened = [event.writer_epoch for event in tables.events if event.kind == "writer.opened"]
    assert opened == sorted(answered), "G2: an epoch for each claim that was answered, and no other"


async def _raced(contestants: list[Contestant], clocks: list[tuple[Any, Track]]) -> None:
    """Let time pass until everybody has raced; whoever fails ends the race, and its error is the one reported."""
    over = asyncio.Event()

    async def time() -> None:
        await asyncio.gather(*(time_passes(admin, track, over, random.Random(track.id)) for admin, track in clocks))

    passing = asyncio.ensure_future(time())
    try:
        await asyncio.gather(*(contestant.race(ROUNDS) for contestant in contestants))
    finally:
        over.set()
        await passing


@pytest.mark.rules("G2", "G3", "G4", "G7", "G8")
async def test_g02_g08_hold_where_writers_race_and_leases_run_out_under_them(ledger_dsns: dict[str, str]) -> None:
    async with AsyncExitStack() as stack:
        ledger = await stack.enter_async_context(await Ledger.open(ledger_dsns["writer"], allow_unsafe_fsync=True))
        admins = [await stack.enter_async_context(connection_to(ledger_dsns["admin"])) for _ in range(2)]
        tracks = []
        for branch in ("one", "two"):
            binding = DestinationBinding(url="http://infrahub.example:8000", branch=branch)
            tracks.append(Track(await ledger.register_binding(binding), binding))
        firsts = await asyncio.gather(*(commit_both_runs(ledger, track) for track in tracks for _ in range(4)))
        assert sum(firsts) == 4, "G7: a commit is the first one once"
        contestants = []
        for track, number in itertools.product(tracks, range(CONTESTANTS)):
            store = await stack.enter_async_context(open_writer(ledger_dsns["writer"]))
            contestants.append(Contestant(f"writer-{number}", track, store, ledger, random.Random(number)))
        await _raced(contestants, [(admin, track) for admin, track in zip(admins, tracks, strict=True)])
        for track in tracks:
            tables = await Tables.read(admins[0], track.id)
            check_guarantees(tables, track.marked)
            _as_appended(tables, track)
            assert track.fenced, "nobody was ever refused: this was no race"
