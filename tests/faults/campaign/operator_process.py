"""The operator of an episode: commits, again and again, stops and resumes, in a process that is killed at some time."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

import structlog

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.store.errors import (
    LedgerBusyError,
    LedgerUnavailableError,
    OrderConflictError,
    PolicyConflictError,
    RunFinishedError,
    RunStillOpenError,
    StoreError,
    UnknownRunError,
)
from ledger.store.ledger import Ledger
from ledger.store.records import Receipt
from tests.faults.campaign.script import Timed
from tests.faults.campaign.trail import Trail

_OPEN_AGAIN_AFTER = 0.1
_REFUSALS = (PolicyConflictError, UnknownRunError, RunFinishedError, RunStillOpenError, OrderConflictError)
"""What an order may be answered with that comes at the wrong moment."""


@dataclass(frozen=True)
class OperatorTask:
    """What the operator does, and when. ``seed`` decides the policies of its resumes."""

    dsn: str
    url: str
    branches: tuple[str, ...]
    commits: tuple[tuple[int, PlanCommit], ...]
    orders: tuple[Timed, ...]
    trail: Path
    log: Path
    seed: str


def run(task: OperatorTask, _connection: Connection) -> None:
    """The process: works until it is killed."""
    sys.stderr = task.log.open("a", buffering=1, encoding="utf-8")
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_work(task))


async def _work(task: OperatorTask) -> None:
    trail, rng, began = Trail(task.trail), random.Random(task.seed), time.monotonic()
    trail.step("started")
    ledger = await _open(task.dsn)
    for order in _orders(task, rng):
        await asyncio.sleep(max(0.0, began + order.at - time.monotonic()))
        place, commit = task.commits[order.number]
        branch = task.branches[place]
        policy = Policy(on_unknown="converge", allow_stale=rng.random() < 0.8)
        trail.step(order.what, branch, run_id=commit.run_id)
        try:
            binding = DestinationBinding(url=task.url, branch=branch)
            receipt = await give(ledger, binding, order.what, commit, policy)
        except (*_REFUSALS, LedgerUnavailableError, LedgerBusyError) as refusal:
            trail.step("refused", branch, error=type(refusal).__name__)
        except StoreError as wrong:
            trail.step("wrong", branch, error=f"{type(wrong).__name__}: {wrong}")
        else:
            trail.step("receipt", branch, run_id=commit.run_id, what=order.what, inbox_id=receipt.inbox_id)


async def _open(dsn: str) -> Ledger:
    """The ledger, when its database takes connections."""
    while True:
        try:
            return await Ledger.open(dsn, ask_again_for=1.0)
        except (LedgerUnavailableError, LedgerBusyError):
            await asyncio.sleep(_OPEN_AGAIN_AFTER)


def _orders(task: OperatorTask, rng: random.Random) -> Iterator[Timed]:
    """The list; when it is at its end, resumes of any run until somebody ends this process."""
    yield from task.orders
    at = task.orders[-1].at
    while True:
        at += rng.uniform(0.05, 0.25)
        yield Timed(at, "resume", rng.randrange(len(task.commits)))


async def give(ledger: Ledger, binding: DestinationBinding, what: str, commit: PlanCommit, policy: Policy) -> Receipt:
    """Give one order.

    Raises:
        StoreError: it was refused, or may be recorded or not.
    """
    binding_id = await ledger.register_binding(binding)
    if what == "commit":
        later = commit.model_copy(update={"committed_at": f"2026-11-29T18:05:00.{time.time_ns() % 10**6:06d}+00:00"})
        return await ledger.submit_commit(binding_id, later)
    if what == "stop":
        return await ledger.submit_stop(binding_id, run_id=commit.run_id, by="operator", reason="campaign")
    return await ledger.submit_resume(binding_id, run_id=commit.run_id, by="operator", reason="campaign", policy=policy)
