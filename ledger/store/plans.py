"""Plans and artifacts as stored: by content, once, with the exact bytes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any

from ledger.store.errors import InvalidCallError, PlanNotStoredError
from ledger.store.reading_ahead import PAGE, read_ahead
from ledger.store.records import PlanRows, StoredArtifact, StoredOperation, StoredPlan
from ledger.store.session import Session, transaction
from ledger.store.sql_files import query

_CHUNK_LINES = 5000
_CHUNK_BYTES = 8 * 1024 * 1024


class PlanQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def store_plan(
        self,
        *,
        checksum: str,
        body: bytes,
        lines: Collection[bytes],
        object_keys: Collection[bytes],
        coverage: Collection[bytes] | None,
    ) -> None:
        """Store a plan whole, in one transaction; a plan that is there is compared, not written again.

        Lines are asked for as they are sent, some thousand at a time, and again where the call has to be repeated.

        Args:
            checksum: the plan checksum, 64 hexadecimal digits; the database computes it again.
            body: the checksummed body of the manifest.
            lines: the exact lines with their newlines, in stored order.
            object_keys: 32 bytes for each line (:func:`ledger.plan.canonical.object_key`).
            coverage: the exact coverage lines, or None where the plan recorded none.

        Raises:
            PlanConflictError: the lines are not what the checksum names, or another plan stands under it.
            InvalidCallError: not one key for each line.
        """
        if len(lines) != len(object_keys):
            raise InvalidCallError(
                checked="the object keys of a plan",
                expected=f"{len(lines)}, one for each line",
                found=str(len(object_keys)),
                next_action="compute a key for each operation",
            )
        digest = None if coverage is None else await asyncio.to_thread(_digest, coverage)
        count = None if coverage is None else len(coverage)
        head = (bytes.fromhex(checksum), body.decode(), len(lines), count, digest)

        async def work(connection: Any) -> None:
            async with transaction(connection):
                if await connection.fetchval(query("open_plan"), *head):
                    await _add_lines(connection, head[0], lines, object_keys, coverage or ())
                    await connection.execute(query("seal_plan"), head[0])

        await self._session.run(work, doing="storing the plan")

    async def plan(self, checksum: str) -> StoredPlan | None:
        """The head of a stored plan."""
        row = await self._session.row("plan", bytes.fromhex(checksum))
        if row is None:
            return None
        digest: bytes | None = row["coverage_digest"]
        return StoredPlan(
            checksum,
            row["body"].encode(),
            row["operations_count"],
            row["coverage_count"],
            None if digest is None else digest.hex(),
            row["seals"],
        )

    async def stored_plan(self, checksum: str) -> AsyncIterator[bytes]:
        """The lines of a stored plan with their newlines, in order.

        Raises:
            PlanNotStoredError: no plan has this checksum.
        """
        await self._require_plan(checksum)
        async for row in self._pages("plan_lines", checksum):
            yield row["line"].encode()

    async def stored_operations(self, checksum: str) -> AsyncIterator[StoredOperation]:
        """The lines of a stored plan, in order, with the columns beside them.

        Raises:
            PlanNotStoredError: no plan has this checksum.
        """
        await self._require_plan(checksum)
        async for row in self._pages("plan_operations", checksum):
            yield StoredOperation(row["line"].encode(), row["operation_id"], row["object_key"])

    async def planned_pages(
        self, checksum: str
    ) -> AsyncGenerator[tuple[Sequence[bytes], Sequence[bytes], Sequence[bytes]], None]:
        """The same, some at a time, in three columns: lines, operation ids, object keys.

        Raises:
            PlanNotStoredError: no plan has this checksum.
        """
        await self._require_plan(checksum)
        plan, taken = bytes.fromhex(checksum), 0

        def page_after(ordinal: int) -> Awaitable[list[Any]]:
            return self._session.rows("planned_page", plan, ordinal, PAGE)

        def last_of(rows: list[Any]) -> int:
            nonlocal taken
            taken += len(rows)
            return taken

        async with aclosing(read_ahead(page_after, 0, last_of)) as pages:
            async for rows in pages:
                lines, names, keys = zip(*rows, strict=True)
                yield lines, names, keys

    async def stored_coverage(self, checksum: str) -> AsyncIterator[bytes]:
        """The coverage lines of a stored plan with their newlines, in order; none where it recorded none.

        Raises:
            PlanNotStoredError: no plan has this checksum.
        """
        await self._require_plan(checksum)
        async for row in self._pages("coverage_lines", checksum):
            yield row["line"].encode()

    async def plan_rows(self, checksum: str) -> PlanRows:
        """How many rows a plan has, counted apart from the pages in which they are read."""
        return PlanRows(**dict(await self._session.row("plan_rows", bytes.fromhex(checksum)) or {}))

    async def lines_between(self, checksum: str, first: int, last: int) -> dict[int, tuple[bytes, bytes]]:
        """By ordinal, from ``first`` to ``last``: the object key and the line with its newline."""
        rows = await self._session.rows("plan_lines_between", bytes.fromhex(checksum), first, last)
        return {row["ordinal"]: (row["object_key"], row["line"].encode()) for row in rows}

    async def planned_between(
        self, checksum: str, first: int, last: int
    ) -> tuple[Sequence[int], Sequence[bytes], Sequence[bytes]]:
        """The same in three columns: ordinals, object keys, lines."""
        rows = await self._session.rows("planned_between", bytes.fromhex(checksum), first, last)
        if not rows:
            return (), (), ()
        ordinals, keys, lines = zip(*rows, strict=True)
        return ordinals, keys, lines

    async def coverage_line(self, checksum: str, ordinal: int) -> bytes | None:
        """One line of a plan's coverage with its newline, or None where there is none at this place."""
        line: str | None = await self._session.value("coverage_line", bytes.fromhex(checksum), ordinal)
        return None if line is None else line.encode()

    async def store_artifact(
        self, *, binding_id: int, run_id: str, checksum: str, source: str, manifest: bytes, digest: str
    ) -> None:
        """Store the raw manifest of one run; its plan must be stored. Again with the same content is harmless.

        Raises:
            ArtifactConflictError: another artifact is stored for this run.
            ConstraintRefusedError: the plan is not stored.
        """
        await self._session.value(
            "store_artifact", binding_id, run_id, bytes.fromhex(checksum), source, manifest, bytes.fromhex(digest)
        )

    async def stored_artifact(self, binding_id: int, run_id: str) -> StoredArtifact | None:
        """The manifest that a run had, or None where it was never verified."""
        row = await self._session.row("artifact", binding_id, run_id)
        if row is None:
            return None
        return StoredArtifact(
            run_id=row["run_id"],
            checksum=row["plan_checksum"].hex(),
            source=row["source"],
            manifest=row["manifest"],
            digest=row["artifact_digest"].hex(),
            stored_at=row["stored_at"],
        )

    async def store_detail(self, data: bytes) -> str:
        """Store a list that does not fit an event body; returns its sha256 as 64 hexadecimal digits."""
        digest: bytes = await self._session.value("store_detail", data)
        return digest.hex()

    async def detail(self, sha256: str) -> bytes | None:
        """Such a list, or None where there is none with this sha256."""
        data: bytes | None = await self._session.value("detail", bytes.fromhex(sha256))
        return data

    async def _require_plan(self, checksum: str) -> None:
        if await self.plan(checksum) is None:
            raise PlanNotStoredError(
                checked="the stored plan",
                expected=f"a plan with checksum {checksum}",
                found="none",
                next_action="read the plan's files in its run directory instead",
            )

    async def _pages(self, name: str, checksum: str) -> AsyncIterator[Any]:
        ordinal = 0
        while True:
            rows = await self._session.rows(name, bytes.fromhex(checksum), ordinal, _CHUNK_LINES)
            for row in rows:
                yield row
            if len(rows) < _CHUNK_LINES:
                return
            ordinal += len(rows)


def _digest(lines: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
    return digest.digest()


async def _add_lines(
    connection: Any, checksum: bytes, lines: Iterable[bytes], keys: Iterable[bytes], coverage: Iterable[bytes]
) -> None:
    left = iter(keys)
    async for first, texts in _chunks(lines):
        some = await asyncio.to_thread(list, islice(left, len(texts)))
        await connection.execute(query("add_plan_lines"), checksum, first, texts, some)
    async for first, texts in _chunks(coverage):
        await connection.execute(query("add_plan_coverage"), checksum, first, texts)


async def _chunks(lines: Iterable[bytes]) -> AsyncIterator[tuple[int, list[str]]]:
    """Runs of lines, made in a thread so that a lease can be renewed meanwhile, each with the place of its first."""
    runs = _runs(lines)
    first = 0
    while texts := await asyncio.to_thread(next, runs, None):
        yield first, texts
        first += len(texts)


def _runs(lines: Iterable[bytes]) -> Iterator[list[str]]:
    """Runs of lines that are bounded in number and, but for a single huge line, in bytes."""
    texts: list[str] = []
    size = 0
    for line in lines:
        if texts and (len(texts) >= _CHUNK_LINES or size + len(line) > _CHUNK_BYTES):
            yield texts
            texts, size = [], 0
        texts.append(line.decode())
        size += len(line)
    if texts:
        yield texts
