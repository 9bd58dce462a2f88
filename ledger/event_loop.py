"""Event loops that end where a machine has no memory left, and the threads that they use.

``threading.Thread.start`` waits for the first word of the new thread. One that finds no memory for it never says it,
and whoever started it waits for ever (CPython issue 140746). So a thread is started only where there is room for one,
and the end of a loop, for which ``asyncio.run`` starts a thread too, needs none here.
"""

from __future__ import annotations

import asyncio
import mmap
import resource
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

_FIRST_WORDS = 2 << 20
"""Bytes for what a thread needs before anybody hears of it: frames, an arena of small objects."""
_USUAL_STACK = 8 << 20
"""Where the limit of a stack is none."""


def require_room() -> None:
    """See whether this process may have the memory of another thread; nothing is kept of it.

    Raises:
        RuntimeError: it may not; in the words of Python where the system refuses a thread.
    """
    stack = threading.stack_size() or resource.getrlimit(resource.RLIMIT_STACK)[0]
    try:
        mmap.mmap(-1, (_USUAL_STACK if stack in (0, resource.RLIM_INFINITY) else stack) + _FIRST_WORDS).close()
    except OSError as exc:
        raise RuntimeError("can't start new thread") from exc


def start_thread(thread: threading.Thread) -> None:
    """Start it.

    Raises:
        RuntimeError: there is no room for it, or the system refuses it.
    """
    require_room()
    thread.start()


class ThreadPool(ThreadPoolExecutor):
    """A pool that looks for room before it grows.

    Attributes:
        unfinished: what was given to it and has not ended.
    """

    def __init__(self, most: int | None = None, *, name: str = "") -> None:
        """``most`` threads at once; by default as many as asyncio would have."""
        super().__init__(most, thread_name_prefix=name)
        self.unfinished: set[Future[Any]] = set()
        self._threads_had = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have it called on a thread.

        Raises:
            RuntimeError: it needs another thread, and there is no room for one; or the pool is closed.
        """
        if len(self.unfinished) >= self._threads_had:
            require_room()
        future = super().submit(fn, *args, **kwargs)
        self.unfinished.add(future)
        self._threads_had = max(self._threads_had, len(self.unfinished))
        future.add_done_callback(self.unfinished.discard)
        return future


class _Loop(asyncio.SelectorEventLoop):
    """The usual loop, with a pool of ours, which it waits for without a thread."""

    def __init__(self) -> None:
        super().__init__()
        self._pool = ThreadPool(name="asyncio")
        self.set_default_executor(self._pool)

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait until nothing runs on a thread any more."""
        async with asyncio.timeout(timeout):
            left = [asyncio.wrap_future(future) for future in list(self._pool.unfinished)]
            await asyncio.gather(*left, return_exceptions=True)
        self._pool.shutdown(wait=False)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on a loop of its own, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)
