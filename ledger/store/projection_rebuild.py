"""A projection computed again from the first event, beside the live one, and compared with it byte for byte (G9)."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from ledger.projections.errors import ProjectionCollisionError, RebuildBusyError
from ledger.projections.fold import Projection
from ledger.projections.registry import PROJECTIONS
from ledger.store.connect import HELD_LOCK_SECONDS, Limits, connect
from ledger.store.projections import PAGE, Cursor, Place, ProjectionStore
from ledger.store.session import store_errors, transaction
from ledger.store.sql_files import query

SHADOW = "rebuild"
_LIMITS = Limits(statement=600.0, idle_in_transaction=600.0)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What one rebuild found.

    Attributes:
        projection: its name and version, such as ``runs/1``.
        binding_id: whose events.
        position: at which both were compared.
        documents: how many there are.
        equal: whether live and rebuilt were the same bytes; None where there was no live one.
        digest: sha256 over the rebuilt documents and their keys, in order.
        live_digest: the same over the live ones.
    """

    projection: str
    binding_id: int
    position: int
    documents: int
    equal: bool | None
    digest: str
    live_digest: str


@dataclass(frozen=True, slots=True)
class _Contents:
    documents: int
    digest: str


async def rebuild(projector_dsn: str, *, allow_unsafe_fsync: bool = False, page_size: int = PAGE) -> list[Rebuilt]:
    """Recompute every projection of every binding, compare, and put the new one in place where they differ.

    The log is the truth: a live projection that differs, or is not there, is replaced.

    Args:
        projector_dsn: the projector's DSN.
        allow_unsafe_fsync: for tests only.
        page_size: events per transaction.

    Raises:
        RebuildBusyError: another process is rebuilding.
        ProjectionDriftedError: the log has a gap or a broken link.
        StoreError: the database.
    """
    async with (
        _one_at_a_time(projector_dsn),
        await ProjectionStore.open(
            projector_dsn,
            application_name="apply-ledger rebuild",
            limits=_LIMITS,
            allow_unsafe_fsync=allow_unsafe_fsync,
        ) as store,
    ):
        bindings = [row["id"] for row in await store.session.rows("bindings", None, None, None)]
        return [
            await _rebuild(store, projection, binding_id, page_size)
            for binding_id in bindings
            for projection in PROJECTIONS
        ]


async def _rebuild(store: ProjectionStore, projection: Projection, binding_id: int, page_size: int) -> Rebuilt:
    live, shadow = Place(projection, binding_id), Place(projection, binding_id, SHADOW)
    await store.session.run(lambda connection: _clear(connection, shadow), doing="the start of a rebuild")
    await store.session.run(
        lambda connection: connection.execute(query("ensure_projection_cursor"), *live.arguments),
        doing="the start of a rebuild",
    )
    while True:
        standing = await store.cursor(live)
        # A live projection that has seen nothing gives no position to compare at: then the new one goes to the head.
        until = standing.position if standing and standing.position else None
        reached, _ = await store.follow(shadow, until=until, page_size=page_size)
        if until is not None and until < reached.position:
            await store.follow(live, until=reached.position, page_size=page_size)
        found = await store.session.run(
            lambda connection: _settle(connection, live, shadow), doing="the comparison of a rebuild"
        )
        if found is not None:
            return found


async def _settle(connection: Any, live: Place, shadow: Place) -> Rebuilt | None:
    """Compare under the live cursor's lock, so that neither moves; None where the live one has moved on before."""
    async with transaction(connection):
        before = await _locked_cursor(connection, live)
        after = await _locked_cursor(connection, shadow)
        if 0 < before.position != after.position and await _can_meet(connection, live, before, after):
            return None
        old, new = await _contents(connection, live), await _contents(connection, shadow)
        equal = None if before.position == 0 < after.position else (before, old) == (after, new)
        await _clear(connection, shadow if equal else live)
        if not equal:
            key = (live.projection.name, live.projection.version, live.binding_id)
            await connection.execute(query("promote_projection_documents"), *key)
            await connection.execute(query("promote_projection_cursor"), *key)
    return Rebuilt(
        projection=f"{live.projection.name}/{live.projection.version}",
        binding_id=live.binding_id,
        position=after.position,
        documents=new.documents,
        equal=equal,
        digest=new.digest,
        live_digest=old.digest,
    )


async def _can_meet(connection: Any, live: Place, before: Cursor, after: Cursor) -> bool:
    """Whether the one that is behind can still come to the other: not where the log ends before the live cursor."""
    behind, ahead = sorted((before.position, after.position))
    return bool(await connection.fetch(query("events"), live.binding_id, behind, ahead, 1))


async def _locked_cursor(connection: Any, place: Place) -> Cursor:
    row = await connection.fetchrow(query("lock_projection_cursor"), *place.arguments)
    if row is None:
        raise ProjectionCollisionError(
            checked=f"the cursor of the projection {place.projection.name} of binding {place.binding_id}",
            expected="that it exists until the comparison",
            found="that it was removed, or the answer to its removal was lost",
            next_action="run the rebuild again",
        )
    return Cursor(row["position"], row["hash"])


async def _contents(connection: Any, place: Place) -> _Contents:
    """Count and digest of all documents, streamed. Each part is length-prefixed, so that none can pass for another."""
    digest, count = hashlib.sha256(), 0
    async for row in connection.cursor(query("all_projection_documents"), *place.arguments, prefetch=5000):
        count += 1
        for part in (row["subject"], row["item"], row["document"]):
            data = part.encode()
            digest.update(len(data).to_bytes(8, "big") + data)
    return _Contents(count, digest.hexdigest())


async def _clear(connection: Any, place: Place) -> None:
    await connection.execute(query("drop_projection_documents"), *place.arguments)
    await connection.execute(query("drop_projection_cursor"), *place.arguments)


@asynccontextmanager
async def _one_at_a_time(dsn: str) -> AsyncIterator[None]:
    """Hold the rebuild's lock in a transaction of its own; it goes with the connection, whatever happens."""
    limits = replace(_LIMITS, idle_in_transaction=HELD_LOCK_SECONDS)
    connection = await connect(dsn, application_name="apply-ledger rebuild lock", limits=limits)
    try:
        with store_errors("the lock of a rebuild"):
            await connection.transaction().start()
            locked = await connection.fetchval(query("try_lock_rebuild"))
        if not locked:
            raise RebuildBusyError(
                checked="the lock of the rebuild",
                expected="to be alone",
                found="another process that is rebuilding the projections of this database",
                next_action="wait for it",
            )
        yield
    finally:
        await connection.close(timeout=_LIMITS.connect)
