"""Readers of event streams that come back by themselves, as a browser does, while the server is restarted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial

import httpx

from ledger.api.limits import ApiLimits
from ledger.api.tokens import Role
from tests.support.api import BASE, listening, make_tokens, served
from tests.support.recorded_runs import RecordedPlan, Recorder, make_plan
from tests.support.store import until

LIMITS = ApiLimits(requests_per_second=1e6, burst=10**6, stream_poll_seconds=0.02)


@dataclass
class StreamReader:
    """One reader of one address. ``seen`` holds every id in the order in which it came, over all connections."""

    url: str
    token: str
    seen: list[int] = field(default_factory=list)
    connections: int = 0

    async def follow(self, end: asyncio.Future[int]) -> None:
        """Read, and come back whenever the stream ends, until the position that ``end`` will say was seen."""
        async with httpx.AsyncClient(timeout=httpx.Timeout(60.0)) as client:
            while not (end.done() and self.seen and self.seen[-1] >= end.result()):
                with suppress(httpx.TransportError):
                    async for position in self._connection(client):
                        self.seen.append(position)
                        if end.done() and position >= end.result():
                            return
                await asyncio.sleep(0.01)  # a server that is away is not asked without end

    async def _connection(self, client: httpx.AsyncClient) -> AsyncIterator[int]:
        headers = {"Authorization": f"Bearer {self.token}"}
        if self.seen:
            headers["Last-Event-ID"] = str(self.seen[-1])
        async with client.stream("GET", self.url, headers=headers) as response:
            if response.status_code != 200:
                raise AssertionError(f"{response.status_code}: {(await response.aread()).decode()}")
            self.connections += 1
            async for line in response.aiter_lines():
                # A browser takes an event at the empty line behind it; what is cut before that comes again.
                if line.startswith("id: "):
                    pending = int(line.removeprefix("id: "))
                elif not line and "pending" in locals():
                    yield pending
                    del pending


@dataclass(frozen=True)
class Followed:
    """What became of the readers, and the log that they read."""

    readers: list[StreamReader]
    head: int


async def follow_with_restarts(
    dsns: Mapping[str, str],
    recording: Recorder,
    *,
    readers: int,
    operations: int,
    restarts: int,
    within: float = 60.0,
) -> Followed:
    """Record a run of ``operations`` while ``readers`` follow it and the server is stopped and started again.

    The readers come in turn, so that some begin in the middle of the run; the server gets its port again each time.
    """
    tokens = await make_tokens(dsns)
    loop = asyncio.get_running_loop()
    end: asyncio.Future[int] = loop.create_future()
    plan = make_plan("followed", creates=operations, deletes=0)
    port = 0
    everyone: list[StreamReader] = []
    following: list[asyncio.Task[None]] = []
    async with AsyncExitStack() as whole:
        tasks = await whole.enter_async_context(asyncio.TaskGroup())
        for part in range(restarts + 1):
            async with served(dsns, limits=LIMITS, tokens=tokens) as opened, listening(opened, port=port) as url:
                port = httpx.URL(url).port or 0
                for _ in range(readers // (restarts + 1) if part < restarts else readers - len(everyone)):
                    reader = StreamReader(
                        f"{url}{BASE}/bindings/{recording.binding_id}/events/stream", tokens[Role.AUDITOR]
                    )
                    everyone.append(reader)
                    following.append(tasks.create_task(reader.follow(end)))
                before = [reader.connections for reader in everyone]
                await _record(recording, plan, operations, part, restarts + 1, end)
                await until(partial(_all_came, everyone, before), within=within)
                if part == restarts:
                    await asyncio.gather(*following)
    return Followed(everyone, end.result())


async def _all_came(readers: list[StreamReader], before: list[int]) -> bool:
    """Whether every reader has found the server since it was started; else a restart would not meet all of them."""
    return all(reader.connections > count for reader, count in zip(readers, before, strict=True))


async def _record(
    recording: Recorder, plan: RecordedPlan, operations: int, part: int, parts: int, end: asyncio.Future[int]
) -> None:
    if part == 0:
        await recording.commit(plan)
        await recording.started(plan)
    for ordinal in range(operations * part // parts, operations * (part + 1) // parts):
        appended = await recording.outcome(plan, ordinal, "applied")
        if ordinal == operations - 1:
            # Said before it is there: a reader that sees the last event has to know that it is the last.
            end.set_result(appended.last_position + 1)
            await recording.ended(plan, "run.applied")
