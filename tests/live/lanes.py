"""Two workers of ours on one branch of a real server, and turns in which a request of theirs is still on its way when
it is time for the next attempt.

A relay holds the request back. It lets it go when the next mutation arrives, so that the server works on both at once,
or after a time that is longer than every time-out. So a worker that does not wait for quiet doubles what it writes, and
one that waits never meets its own first attempt.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch
from tests.live.worker_process import Service, run
from tests.live.writing import LiveWriter, create
from tests.support.http_relay import Fate, HttpRelay, http_relay
from tests.support.operations import many, update
from tests.support.processes import RealProcess
from tests.support.store import connection_to
from tests.support.waiting import until

Manner = Literal["late", "frozen", "killed"]
"""What happens to the worker whose request is held: it gives up and repeats it itself when the run is resumed; it is
stopped (SIGSTOP) until the other has taken over and repeated it, and goes on afterwards; it is killed."""

TIMES = {"request_timeout": 4.0, "lease_ttl": 30.0, "settle_seconds": 8.0, "poll_interval": 0.1}
HELD: dict[Manner, float] = {"late": 7.0, "frozen": 3.5, "killed": 3.5}
"""Longer than a worker needs to its second attempt, and shorter by five seconds than it does with the quiet time."""
_END_THE_LEASE = """update ledger.binding set lease_expires_at = clock_timestamp()
where branch = $1 and lease_owner is not null"""
_CHOICES = (("red", "blue"), ("green", "amber"))


def tags_of(branch: LiveBranch, *names: str) -> dict[str, str]:
    """New tags of a branch: their ids by name."""
    return {name: create(branch, "BuiltinTag", name={"value": name}) for name in names}


class Worker:
    """One process that serves the lane."""

    def __init__(self, service: Service) -> None:
        self.process = RealProcess(run, service)
        self._begun: list[str] = []

    def has_begun(self, run_id: str) -> bool:
        """Whether it began a run, or went on with it."""
        while self.process.connection.poll():
            self._begun.append(self.process.connection.recv())
        return run_id in self._begun

    async def end(self) -> None:
        """Tell it to end, which it must do well."""
        self.process.send_signal(signal.SIGTERM)
        assert (await self.process.ended())[0] == 0


@dataclass
class Lane:
    """One branch behind a relay of its own, two workers that serve it, and a site that they change.

    A lease lasts longer than a busy machine may starve a worker; an administrator ends it where a worker is struck.
    """

    writer: LiveWriter
    administrator: str
    relay: HttpRelay
    service: Service
    site: str
    tags: dict[str, str]
    workers: list[Worker] = field(default_factory=list)
    applied: dict[int, Worker] = field(default_factory=dict)
    """The worker of each epoch under which an operation was applied."""

    async def start_workers(self) -> None:
        """Fill up to two."""
        while len(self.workers) < 2:
            self.workers.append(await asyncio.to_thread(Worker, self.service))

    async def overlap(self, turn: int, manner: Manner, *, held: float | None = None) -> list[str]:
        """One change whose first attempt outlives what its worker may wait for; what is wrong afterwards, in words."""
        run_id, names = f"turn-{turn}", _CHOICES[turn % 2]
        self.relay.most_under_way = 0
        self.relay.fates.append(Fate("hold for next", HELD[manner] if held is None else held))
        await self.writer.commit(run_id, [self._retagged(names, run_id)], position=await self.writer.head())
        await until(lambda: self.relay.most_under_way > 0)
        (holder,) = (worker for worker in self.workers if worker.has_begun(run_id))
        successor = holder
        if manner != "late":
            (successor,) = (worker for worker in self.workers if worker is not holder)
            await self._strike(holder, manner)
        endings = await self.writer.ended(run_id, resume=manner == "late")
        assert endings == ["run.interrupted", "run.applied"], "the request was not late"
        if manner == "frozen":
            holder.process.send_signal(signal.SIGCONT)
        await until(lambda: self.relay.under_way == 0)
        await self._account(run_id, manner, successor)
        await self.start_workers()
        return self._faults(run_id, names)

    async def end(self) -> None:
        """End the workers; whoever was fenced has appended nothing, and more than one has applied something."""
        for worker in self.workers:
            await worker.end()
        epochs = [event.writer_epoch for event in await self.writer.events() if event.writer_epoch is not None]
        assert epochs == sorted(epochs), "an epoch that was over has appended"
        assert len({id(worker) for worker in self.applied.values()}) > 1, "only one worker has ever written"

    def _retagged(self, names: tuple[str, ...], description: str) -> PlannedOperation:
        """An update that gives the site another set of tags each turn."""
        tags = many("tags", "BuiltinTag", *({"name": name} for name in names))
        payload = {"name": "s", "description": description}
        return update("LocationSite", {"name": "s"}, payload, tags, destination_id=self.site)

    async def _strike(self, holder: Worker, manner: Manner) -> None:
        if manner == "frozen":
            holder.process.send_signal(signal.SIGSTOP)
            await holder.process.frozen()
        else:
            holder.process.send_signal(signal.SIGKILL)
            assert (await holder.process.ended())[0] == -signal.SIGKILL
            holder.process.clean_up()
            self.workers.remove(holder)
        async with connection_to(self.administrator) as connection:
            await connection.execute(_END_THE_LEASE, self.writer.branch)

    async def _account(self, run_id: str, manner: Manner, successor: Worker) -> None:
        """Two attempts, the first unknown and the second applied; the second is the successor's."""
        assert await self.writer.outcomes(run_id) == [(0, "unknown", 1), (0, "applied", 2)]
        assert successor.has_begun(run_id)
        epochs = {event.kind: event.writer_epoch for event in await self.writer.events(run_id)}
        first, unknown, applied = (epochs[kind] for kind in ("run.started", "operation.unknown", "operation.applied"))
        assert first is not None
        assert applied is not None
        assert unknown == applied
        assert (applied > first) is (manner != "late")
        assert self.applied.setdefault(applied, successor) is successor

    def _faults(self, run_id: str, names: tuple[str, ...]) -> list[str]:
        expected = {"description": run_id, "tags": sorted(self.tags[name] for name in names), "count": len(names)}
        found = self.writer.site(self.site)
        faults = [] if found == expected else [f"corrupted: expected {expected}, found {found}"]
        if self.relay.most_under_way > 1:
            faults.append("two attempts at one object were under way at once")
        return faults


@asynccontextmanager
async def lane(first: LiveWriter, administrator: str, **times: float) -> AsyncIterator[Lane]:
    """Another branch with two workers that look for orders all the time; ``times`` replaces some of theirs.

    ``administrator`` is the DSN of the ledger's owner.
    """
    branch = first.live.infrahub.new_branch("lane")
    async with http_relay(branch.url) as relay:
        root, changes = first.root / branch.name, TIMES | times
        writer = replace(first, url=relay.url, branch=branch.name, live=branch, root=root, changes=changes)
        service = Service(first.dsn, relay.url, branch.name, first.token, str(root), changes)
        tags = tags_of(branch, *(name for names in _CHOICES for name in names))
        site = create(branch, "LocationSite", name={"value": "s"})
        running = Lane(writer, administrator, relay, service, site, tags)
        try:
            await running.start_workers()
            yield running
        finally:
            for worker in running.workers:
                worker.process.clean_up()
    branch.discard()
