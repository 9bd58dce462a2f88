"""A small pool on which the named queries run, each call bounded in time and asked again where that helps.

Every call that goes through here is either a read or names what it records by an id or a digest, so asking again after
a lost connection changes nothing. Session state (settings, locks, LISTEN, cursors) never goes through a pool: giving a
connection back does not clear it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Self, TypeVar

import asyncpg
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_random_exponential

from ledger.store.asked import words_of
from ledger.store.connect import Limits, check_server, checked_dsn, server_settings
from ledger.store.doorbell import Ringer
from ledger.store.errors import UnreadableValueError
from ledger.store.sql_files import query
from ledger.store.sqlstates import DRIVER_ERRORS, is_transient, translated

T = TypeVar("T")
_CLOSE_WITHIN = 5.0


async def ask_again(seconds: float, work: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Repeat what failed for transient reasons, for at most ``seconds``; the first other error is raised as it is.

    The first attempt bypasses tenacity: it nearly always succeeds, and it runs once for every operation.
    """
    began = time.monotonic()
    try:
        return await work(*arguments)
    except Exception as exc:  # raised again where it is no transient one of the driver's
        if not is_transient(exc):
            raise
        first: list[Exception] = [exc]

    async def again() -> T:
        if first:
            raise first.pop()
        return await work(*arguments)

    retrying = AsyncRetrying(
        retry=retry_if_exception(is_transient),
        stop=stop_after_delay(seconds - (time.monotonic() - began)),
        wait=wait_random_exponential(multiplier=0.02, max=1.0),
        reraise=True,
    )
    return await retrying(again)


@contextmanager
def store_errors(doing: str) -> Iterator[None]:
    """Turn the driver's errors into the store's. A value of the wrong Python type is a defect and passes."""
    try:
        yield
    except DRIVER_ERRORS as exc:
        # The driver raises this very class for a parameter it cannot encode; the server's own are subclasses of it.
        if type(exc) is asyncpg.DataError:
            raise
        raise translated(exc, doing=doing) from exc
    except OverflowError as exc:  # the driver decodes what a superuser may have stored
        raise UnreadableValueError(
            checked=doing,
            expected="values that an append can have stored",
            found=f"{type(exc).__name__}: {exc}",
            next_action="run 'apply-ledger verify': the log was edited",
        ) from exc


@asynccontextmanager
async def transaction(connection: Any) -> AsyncIterator[None]:
    """One transaction whose first error is the one that is raised.

    The driver's own context manager rolls back on a lost connection too, and that error would hide the cause (FF26).
    """
    work = connection.transaction()
    await work.start()
    try:
        yield
    except BaseException:  # a cancellation too must roll back before it goes on
        if not connection.is_closed():
            with suppress(*DRIVER_ERRORS):
                await work.rollback()
        raise
    await work.commit()


class Session:
    """Runs named queries through a pool."""

    def __init__(self, pool: Any, limits: Limits, ask_again_for: float) -> None:
        self._pool = pool
        self._limits = limits
        self._ask_again_for = ask_again_for
        self.ringer = Ringer(lambda bindings: self.rows("ring", bindings))
        """Tells writers that something was ordered."""

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        application_name: str,
        limits: Limits,
        connections: int,
        ask_again_for: float,
        allow_unsafe_fsync: bool,
    ) -> Self:
        """Open the pool and look at the server once.

        Raises:
            LedgerUnavailableError, LedgerPermissionError, UnsafeServerError, NotMigratedError, NewerDatabaseError:
                as they say.
        """
        pool = asyncpg.create_pool(
            checked_dsn(dsn),
            min_size=0,
            max_size=connections,
            timeout=limits.connect,
            command_timeout=limits.command,
            server_settings=server_settings(application_name, limits),
            # A transaction that is still open is rolled back all the same. Beyond that no call of ours leaves anything
            # behind in its session, and clearing it would be a round trip more for each.
            reset=_nothing_to_clear,
        )
        with store_errors("the connection to the ledger's database"):
            await pool
        try:
            # Somebody waits in front of this: a server that is away is told soon, not after all of ask_again_for.
            await cls(pool, limits, min(ask_again_for, limits.open)).run(
                lambda connection: check_server(connection, allow_unsafe_fsync=allow_unsafe_fsync),
                doing="the connection to the ledger's database",
            )
        except BaseException:  # whatever it was, the pool must not stay open
            pool.terminate()
            raise
        return cls(pool, limits, ask_again_for)

    async def close(self) -> None:
        """Close the pool; after a few seconds without asking for the connections back."""
        try:
            await self.ringer.close()
        finally:  # also where the wait for the last hint was cancelled
            await self._close_pool()

    async def _close_pool(self) -> None:
        try:
            async with asyncio.timeout(_CLOSE_WITHIN):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    async def run(self, work: Callable[[Any], Awaitable[T]], *, doing: str) -> T:
        """Run ``work`` with one connection, again where the connection failed.

        Raises:
            StoreError: by SQLSTATE.
        """
        with store_errors(doing):
            return await ask_again(self._ask_again_for, self._once, work)

    async def rows(self, name: str, *arguments: Any, doing: str | None = None) -> list[Any]:
        """All rows of a named query; ``doing`` names what was asked better than the query does."""
        text, asked = query(name), doing or words_of(name)
        return await self.run(lambda connection: connection.fetch(text, *arguments), doing=asked)

    async def row(self, name: str, *arguments: Any, doing: str | None = None) -> Any:
        """The first row of a named query, or None; ``doing`` as for :meth:`rows`."""
        text, asked = query(name), doing or words_of(name)
        return await self.run(lambda connection: connection.fetchrow(text, *arguments), doing=asked)

    async def value(self, name: str, *arguments: Any) -> Any:
        """The first value of a named query, or None."""
        text = query(name)
        return await self.run(lambda connection: connection.fetchval(text, *arguments), doing=words_of(name))

    async def _once(self, work: Callable[[Any], Awaitable[T]]) -> T:
        async with self._connection() as connection:
            return await work(connection)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        task = asyncio.current_task()
        requests = 0 if task is None else task.cancelling()
        connection = await self._pool.acquire(timeout=self._limits.acquire)
        try:
            if task is not None and task.cancelling() > requests:
                # the driver drops a cancellation that comes together with the connection that it waits for
                raise asyncio.CancelledError
            yield connection
        finally:
            await self._pool.release(connection, timeout=_CLOSE_WITHIN)


async def _nothing_to_clear(_connection: Any) -> None:
    """See where the pool is made."""
