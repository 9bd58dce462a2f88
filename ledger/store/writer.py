"""The writer's side of the store: claim, renew, append, release, on one connection of its own.

A cancelled or timed-out append has an unknown result: it may have committed. So an append runs to its end whatever
happens to the task that asked for it, and after a lost connection it is asked again with the same event ids, which the
database answers as the first time. Fencing and conflicts are never asked again: no state of ours counts as transient.

The driver's own way to cancel a statement opens a second connection without a time limit. It is never used here: a
statement without an answer in time costs the connection.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from ledger.events import SCHEMA_VERSION, NewEvent, WriterOpened, new_event
from ledger.store.asked import words_of
from ledger.store.bindings import in_flight_of
from ledger.store.connect import Limits, check_server, open_connection
from ledger.store.errors import EpochMovedError, UnknownBindingError
from ledger.store.outlasting import outlasting
from ledger.store.records import Appended, InFlight, Lease, OrderState
from ledger.store.session import ask_again, store_errors
from ledger.store.sql_files import query

__all__ = ["Appended", "InFlight", "Lease", "OrderState", "WriterStore"]

T = TypeVar("T")
_CLAIM_ATTEMPTS = 5
_RELEASE_ASKED_FOR = 5.0
"""Seconds; short, because the end of the process waits for the release of its lease."""


class WriterStore:
    """One dedicated connection, reopened where it is lost. Calls from several tasks wait for each other."""

    def __init__(
        self, dsn: str, *, application_name: str, limits: Limits, ask_again_for: float, allow_unsafe_fsync: bool
    ) -> None:
        self._dsn = dsn
        self._application_name = application_name
        self._limits = limits
        self._ask_again_for = ask_again_for
        self._allow_unsafe_fsync = allow_unsafe_fsync
        self._lock = asyncio.Lock()
        self._connection: Any = None

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        application_name: str = "apply-ledger writer",
        limits: Limits | None = None,
        ask_again_for: float = 30.0,
        allow_unsafe_fsync: bool = False,
    ) -> Self:
        """Connect, and look at the server's settings and schema.

        Args:
            dsn: of a role that may execute the functions.
            application_name: as shown by the server.
            limits: time limits; by default a statement has 10 seconds.
            ask_again_for: seconds during which a call is repeated after a lost connection. Keep it below the lease's
                lifetime.
            allow_unsafe_fsync: for tests only: accept a server that runs without fsync.

        Raises:
            LedgerUnavailableError, LedgerPermissionError: no connection.
            UnsafeServerError: the server could lose committed events.
            NotMigratedError, NewerDatabaseError: another schema than this program's.
        """
        store = cls(
            dsn,
            application_name=application_name,
            limits=limits or Limits(lock=5.0, statement=10.0),
            ask_again_for=ask_again_for,
            allow_unsafe_fsync=allow_unsafe_fsync,
        )
        with store_errors("the connection to the ledger's database"):
            await ask_again(min(ask_again_for, store._limits.open), store._connected)
        return store

    async def close(self) -> None:
        """Close the connection, by force where the server does not answer in time."""
        async with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(TimeoutError, OSError):
                    await connection.close(timeout=self._limits.connect)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def claim(
        self, binding_id: int, *, owner: str, ttl: float, settle: float, body_host: str, body_process_id: str
    ) -> Lease:
        """Take a lease that is free or has run out; ``writer.opened`` is appended in the same transaction.

        Args:
            binding_id: what to write to.
            owner: a random name for this process or claim; only it can renew.
            ttl: lifetime of the lease in seconds.
            settle: seconds without requests if an operation was found in flight.
            body_host: the host, as recorded and as shown to others that find the binding held.
            body_process_id: the process, as recorded.

        Raises:
            LeaseHeldError: another process holds it: who, since when, for how long still.
            EpochMovedError: other claims came first, again and again.
            UnknownBindingError: no such binding.
            TransientStoreError: the claim may have been recorded; the lease then runs out.
        """
        moved = AsyncRetrying(
            retry=retry_if_exception_type(EpochMovedError),
            stop=stop_after_attempt(_CLAIM_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.01, max=0.2),
            reraise=True,
        )
        return await moved(self._claim_once, binding_id, owner, ttl, settle, body_host, body_process_id)

    async def renew(self, lease: Lease) -> None:
        """Prolong the lease by its lifetime from now, by the database's clock.

        Raises:
            FencedWriterError: it is no longer this process's.
        """
        await self._value("renew", lease.binding_id, lease.owner, lease.epoch, lease.ttl)

    async def release(self, lease: Lease) -> None:
        """Give the lease back at once. Appends under its epoch are refused from then on.

        A courtesy to the next one: a server that does not answer is not asked again for long, the lease runs out.

        Raises:
            FencedWriterError: it is no longer this process's.
        """
        arguments = (lease.binding_id, lease.owner, lease.epoch)
        await _to_its_end(self._ask("release", "fetchval", arguments, at_most=_RELEASE_ASKED_FOR))

    async def append(
        self,
        lease: Lease,
        events: Sequence[NewEvent],
        *,
        in_flight: InFlight | Literal["keep"] | None = "keep",
        settle: float | None = None,
        close_orders: Sequence[tuple[int, OrderState]] = (),
        expected_head: bytes | None = None,
        meanwhile: Callable[[], None] | None = None,
    ) -> Appended:
        """Append events, move the mark of the operation in flight and close orders, in one transaction.

        Runs to its end even where the calling task is cancelled; the cancellation is raised afterwards. Asking again
        with the same events gives the answer of the first time.

        Args:
            lease: the right to do so.
            events: up to 500; none to move the mark alone.
            in_flight: the operation that is dispatched next, None to clear the mark, ``"keep"`` to leave it.
            settle: seconds from now during which no operation may be dispatched.
            close_orders: inbox rows that these events end.
            expected_head: refuse where the chain has another head.
            meanwhile: called each time that the database was asked, while it works.

        Raises:
            FencedWriterError: the lease is another process's now; nothing was appended.
            QuietPeriodError: ``in_flight`` names an operation before the quiet period has ended.
            EventConflictError, DuplicateFactError: an event is known with other content.
            HeadMismatchError, KindNotAllowedError, TooManyEventsError, BodyTooLargeError, BodyRefusedError,
            OrderConflictError: as they say; nothing was appended.
            TransientStoreError: no answer within the time; the append may have committed.
        """
        mark = in_flight if isinstance(in_flight, InFlight) else None
        lease_of = (lease.binding_id, lease.owner, lease.epoch)
        if mark is not None and _is_one_success(events) and not close_orders and settle is None is expected_head:
            row = await self._row("applied_and_next", *lease_of, *_success(events[0], mark), meanwhile=meanwhile)
            return Appended(row["first_position"], row["last_position"], row["head_hash"])
        row = await self._row(
            "append",
            *lease_of,
            *_columns(events),
            expected_head,
            "set" if mark else ("clear" if in_flight is None else "keep"),
            mark.run_id if mark else None,
            mark.ordinal if mark else None,
            mark.attempt if mark else None,
            settle,
            [inbox_id for inbox_id, _ in close_orders],
            [state for _, state in close_orders],
            meanwhile=meanwhile,
        )
        return Appended(row["first_position"], row["last_position"], row["head_hash"])

    async def close_order(self, lease: Lease, inbox_id: int, state: OrderState) -> None:
        """Close an inbox row that has no event of its own.

        Raises:
            FencedWriterError: the lease is another process's now.
            OrderConflictError: no such order, or it was closed in another way.
        """
        await self._value("close_order", lease.binding_id, lease.owner, lease.epoch, inbox_id, state)

    async def _claim_once(
        self, binding_id: int, owner: str, ttl: float, settle: float, host: str, process_id: str
    ) -> Lease:
        known = await self._row("claimable", binding_id)
        if known is None:
            raise UnknownBindingError(
                checked="the binding to claim",
                expected="a registered binding",
                found=f"id {binding_id}",
                next_action="commit a plan for this destination first",
            )
        epoch = known["writer_epoch"] + 1
        event = new_event(
            "writer.opened",
            WriterOpened(epoch=epoch, process_id=process_id, host=host, role=known["role"]),
            url=known["url"],
            branch=known["branch"],
            n=epoch,
        )
        row = await self._row(
            "claim",
            binding_id,
            owner,
            ttl,
            settle,
            host,
            known["writer_epoch"],
            event.event_id,
            SCHEMA_VERSION,
            event.body.decode(),
        )
        return Lease(
            binding_id=binding_id,
            url=known["url"],
            branch=known["branch"],
            epoch=row["epoch"],
            owner=owner,
            ttl=ttl,
            in_flight=in_flight_of(row),
            quiet_for=row["quiet_for"],
        )

    async def _row(self, name: str, *arguments: Any, meanwhile: Callable[[], None] | None = None) -> Any:
        return await _to_its_end(self._ask(name, "fetchrow", arguments, meanwhile=meanwhile))

    async def _value(self, name: str, *arguments: Any) -> Any:
        return await _to_its_end(self._ask(name, "fetchval", arguments))

    async def _ask(
        self,
        name: str,
        method: str,
        arguments: Sequence[Any],
        *,
        at_most: float = math.inf,
        meanwhile: Callable[[], None] | None = None,
    ) -> Any:
        seconds = min(self._ask_again_for, at_most)
        with store_errors(words_of(name)):
            async with self._lock:
                return await ask_again(seconds, self._once, method, query(name), arguments, meanwhile)

    async def _once(
        self, method: str, text: str, arguments: Sequence[Any], meanwhile: Callable[[], None] | None
    ) -> Any:
        """Ask once, within a task that nobody cancels; without an answer in time the connection is ended."""
        connection = await self._connected()
        loop = asyncio.get_running_loop()
        limit = loop.call_later(self._limits.command, connection.terminate)
        if meanwhile is not None:
            loop.call_soon(meanwhile)  # the driver sends without giving way first, so its turn comes when that is done
        try:
            return await getattr(connection, method)(text, *arguments)
        finally:
            limit.cancel()

    async def _connected(self) -> Any:
        if self._connection is not None and not self._connection.is_closed():
            return self._connection
        connection = await open_connection(self._dsn, application_name=self._application_name, limits=self._limits)
        try:
            await self._looked_at(connection)
        except BaseException:  # whatever it was, the connection must not stay open
            connection.terminate()
            raise
        self._connection = connection
        return connection

    async def _looked_at(self, connection: Any) -> None:
        """Check the server. A task of its own: who opens a store may be cancelled, and the driver must not see that."""
        task = asyncio.ensure_future(check_server(connection, allow_unsafe_fsync=self._allow_unsafe_fsync))
        done, _ = await asyncio.wait({task}, timeout=self._limits.command)
        if not done:
            connection.terminate()
        await task


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to its end in a task of its own; a cancellation of the caller is raised when it is over.

    What ``work`` raised is then the cause of the cancellation, so that neither hides the other.
    """
    outcome = await outlasting(work)
    if outcome.cancelled is not None:
        raise outcome.cancelled from outcome.error
    return outcome.result()


def _is_one_success(events: Sequence[NewEvent]) -> bool:
    """What a writer appends nearly always, together with the next mark: the database has a function for just that."""
    return len(events) == 1 and events[0].kind == "operation.applied"


def _success(event: NewEvent, mark: InFlight) -> tuple[Any, ...]:
    return (
        event.event_id,
        event.schema_version,
        event.run_id,
        event.operation_id,
        event.ordinal,
        event.attempt,
        event.body.decode(),
        mark.run_id,
        mark.ordinal,
        mark.attempt,
    )


def _columns(events: Sequence[NewEvent]) -> tuple[list[Any], ...]:
    return (
        [event.event_id for event in events],
        [event.kind for event in events],
        [event.schema_version for event in events],
        [event.run_id for event in events],
        [event.operation_id for event in events],
        [event.ordinal for event in events],
        [event.attempt for event in events],
        [event.body.decode() for event in events],
    )
