"""Work that continues although its waiter is cancelled.

A cancelled append is not undone, it is only no longer known. So it runs in a task of its own, to its end, and what the
waiting task has to do about its own cancellation it does afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Outlasted(Generic[T]):
    """How the work ended, and whether its waiter was cancelled meanwhile.

    Attributes:
        value: what it returned.
        error: what it raised instead.
        cancelled: the last cancellation of the waiter; it has not been raised yet.
    """

    value: T | None = None
    error: BaseException | None = None
    cancelled: asyncio.CancelledError | None = None

    def result(self) -> T:
        """What the work returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value  # type: ignore[return-value] # without an error it is what the work returned


async def outlasting(work: Coroutine[Any, Any, T]) -> Outlasted[T]:
    """Await ``work`` to its end, even if this task is cancelled meanwhile.

    The work itself says that it is over, instead of a callback of its task: an operation waits here twice, and each
    turn of the event loop between an answer and the next request is time in which nothing is written.
    """
    loop = asyncio.get_running_loop()
    outcome: Outlasted[T] = Outlasted()
    over = loop.create_future()

    async def to_its_end() -> None:
        try:
            outcome.value = await work
        except BaseException as exc:  # noqa: BLE001 - handed to the waiter as it is, whatever it was
            outcome.error = exc
        if not over.done():
            over.set_result(None)

    task = loop.create_task(to_its_end())
    while not over.done() or over.cancelled():
        if over.cancelled():
            over = loop.create_future()
        try:
            await over
        except asyncio.CancelledError as exc:
            outcome.cancelled = exc
            if task.done():
                break
    if task.cancelled():  # before its first step, at the end of the event loop
        work.close()
        outcome.error = outcome.cancelled
    return outcome
