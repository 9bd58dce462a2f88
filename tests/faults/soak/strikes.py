"""Breaks things at their times, and lets each come back."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import asyncpg

from consumers.infrahub.sandbox import RunningSandbox
from tests.faults.soak.script import Strike
from tests.faults.soak.workers import WorkerProcess
from tests.support.kafka_broker import KafkaCluster
from tests.support.postgres import PostgresServer

_SEEN = "select branch, head_position, encode(head_hash, 'hex') as hash from ledger.binding where head_position > 0"


@dataclass
class Breaker:
    """Everything that can be broken. ``seen`` are heads that anybody could read before the database was killed."""

    workers: Sequence[WorkerProcess]
    kafka: KafkaCluster
    server: PostgresServer
    dsn: str
    sandbox: RunningSandbox
    counts: Counter[str] = field(default_factory=Counter)
    seen: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    _broker: asyncio.Lock = field(default_factory=asyncio.Lock)
    _database: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def carry_out(self, strikes: Sequence[Strike], *, began: float) -> None:
        """All strikes at their times; returns when everything is there again."""
        async with asyncio.TaskGroup() as group:
            for number, strike in enumerate(strikes):
                await asyncio.sleep(max(0.0, began + strike.at - time.monotonic()))
                group.create_task(self._strike(strike, random.Random(f"strike {number}")))

    async def _strike(self, strike: Strike, rng: random.Random) -> None:
        match strike.what:
            case "broker kill" | "broker freeze":
                async with self._broker:
                    await self._strike_broker(strike)
            case "database kill" | "database kill all" | "database restart":
                async with self._database:
                    await self._strike_database(strike)
            case "answer":
                self.sandbox.faults.add(strike.answer)
            case _:
                await self.workers[strike.worker].strike(strike, rng)
                return
        self.counts[strike.what] += 1

    async def _strike_broker(self, strike: Strike) -> None:
        (broker,) = self.kafka.brokers
        if strike.what == "broker freeze":
            broker.pause()
            await asyncio.sleep(strike.lasts)
            broker.resume()
            return
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(strike.lasts)
        broker.start()
        await asyncio.to_thread(self.kafka.wait_ready)

    async def _strike_database(self, strike: Strike) -> None:
        await self.look()
        if strike.what == "database restart":
            await asyncio.to_thread(self.server.cluster.stop, mode="fast")
            await asyncio.to_thread(self.server.cluster.start)
        else:
            await asyncio.to_thread(self.server.crash, all_processes=strike.what == "database kill all")

    async def look(self) -> None:
        """Note the heads: what was seen has to be there at the end."""
        connection = await asyncpg.connect(self.dsn)
        try:
            for row in await connection.fetch(_SEEN):
                self.seen.setdefault(row["branch"], []).append((row["head_position"], row["hash"]))
        finally:
            await connection.close()
