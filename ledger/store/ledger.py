"""The ledger as seen by everybody but the writer: read it, put orders into it, store plans beside it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from ledger.store.audited_orders import AuditedOrderQueries
from ledger.store.checkpoints import CheckpointQueries
from ledger.store.connect import Limits
from ledger.store.known_objects import KnownObjectQueries
from ledger.store.live_projections import LiveProjectionQueries
from ledger.store.object_history import ObjectHistoryQueries
from ledger.store.orders import OrderQueries
from ledger.store.plans import PlanQueries
from ledger.store.records import (
    BindingRow,
    ForeignWrite,
    InFlight,
    LastWrite,
    Order,
    OutcomeFact,
    Receipt,
    RunFacts,
    StoredArtifact,
    StoredPlan,
)
from ledger.store.relay import RelayQueries
from ledger.store.session import Session
from ledger.store.sql_functions import SqlFunction, defined_functions
from ledger.store.states import StateQueries
from ledger.store.workers import WorkerQueries

__all__ = [
    "BindingRow",
    "ForeignWrite",
    "InFlight",
    "LastWrite",
    "Ledger",
    "Order",
    "OutcomeFact",
    "Receipt",
    "RunFacts",
    "StoredArtifact",
    "StoredPlan",
]


class Ledger(
    OrderQueries,
    AuditedOrderQueries,
    PlanQueries,
    ObjectHistoryQueries,
    KnownObjectQueries,
    CheckpointQueries,
    LiveProjectionQueries,
    RelayQueries,
    WorkerQueries,
    StateQueries,
):
    """A few connections to the ledger's database. Use it as an asynchronous context manager, or close it.

    Every method may raise ``LedgerUnavailableError`` or ``LedgerBusyError`` after asking again for a bounded time; a
    submitted order may then be recorded or not, and submitting it again is safe.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    async def open(
        cls,
        dsn: str,
        *,
        application_name: str = "apply-ledger",
        limits: Limits | None = None,
        connections: int = 4,
        ask_again_for: float = 15.0,
        allow_unsafe_fsync: bool = False,
    ) -> Self:
        """Connect, and look at the server's settings and schema once.

        Args:
            dsn: of a role that may execute the functions (to write) or select (to read).
            application_name: as shown by the server.
            limits: time limits.
            connections: at most so many.
            ask_again_for: seconds during which a call is repeated after a lost connection.
            allow_unsafe_fsync: for tests only: accept a server that runs without fsync.

        Raises:
            LedgerUnavailableError, LedgerPermissionError: no connection.
            UnsafeServerError: the server could lose committed events.
            NotMigratedError, NewerDatabaseError: another schema than this program's.
        """
        session = await Session.open(
            dsn,
            application_name=application_name,
            limits=limits or Limits(),
            connections=connections,
            ask_again_for=ask_again_for,
            allow_unsafe_fsync=allow_unsafe_fsync,
        )
        return cls(session)

    async def unguarded_tables(self) -> list[str]:
        """Tables of which a trigger or foreign key is not in force as it must be; an untouched ledger has none (G8)."""
        return [row["name"] for row in await self._session.rows("unguarded_tables")]

    async def rows_of_no_binding(self) -> list[tuple[str, int]]:
        """Table and id of each binding that has rows and is not registered; an untouched ledger has none (G8)."""
        return [(row["name"], row["id"]) for row in await self._session.rows("rows_of_no_binding")]

    async def changed_functions(self) -> list[str]:
        """Functions that are not what the migrations made them, or stand there twice; an untouched ledger has none."""
        stored: dict[str, list[SqlFunction]] = {}
        for row in await self._session.rows("stored_functions"):
            function = SqlFunction(row["body"], row["language"], row["security_definer"], frozenset(row["settings"]))
            stored.setdefault(row["name"], []).append(function)
        return sorted(name for name, function in defined_functions().items() if stored.get(name) != [function])

    async def missing_keys(self) -> list[tuple[str, str]]:
        """Table and columns of each key that no unique index keeps; an untouched ledger has none (G8)."""
        return [(row["name"], row["columns"]) for row in await self._session.rows("missing_keys")]

    async def close(self) -> None:
        """Give the connections back."""
        await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
