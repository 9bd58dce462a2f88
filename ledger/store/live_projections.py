"""The live projections as an audit reads them: everything that they hold, page by page, without moving them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Sequence
from contextlib import aclosing
from typing import Any

from ledger.store.reading_ahead import PAGE, read_ahead
from ledger.store.session import Session

_PAGE = 5_000


class LiveProjectionQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def live_cursor(self, projection: str, version: int, binding_id: int) -> tuple[int, bytes] | None:
        """The last event that a projection has taken, and its hash; None where it was never computed."""
        row = await self._session.row("projection_cursor", projection, version, "live", binding_id)
        return None if row is None else (row["position"], row["hash"])

    async def count_live_documents(self, projection: str, version: int, binding_id: int) -> int:
        """How many documents there are, counted apart from the pages in which they are read."""
        return int(await self._session.value("count_live_documents", projection, version, binding_id))

    async def live_documents(
        self, projection: str, version: int, binding_id: int
    ) -> AsyncIterator[tuple[str, str, str]]:
        """Subject, item and text of each document, by key."""
        key: tuple[str | None, str | None] = (None, None)
        while True:
            rows = await self._session.rows("live_documents_page", projection, version, binding_id, *key, _PAGE)
            for row in rows:
                yield row["subject"], row["item"], row["document"]
            if len(rows) < _PAGE:
                return
            key = rows[-1]["subject"], rows[-1]["item"]

    async def hashed_documents(
        self, projection: str, version: int, binding_id: int
    ) -> AsyncGenerator[Sequence[bytes], None]:
        """The same, some at a time: the bytes that each document's hash is taken over."""

        def page_after(key: tuple[str | None, str | None]) -> Awaitable[list[Any]]:
            return self._session.rows("hashed_documents_page", projection, version, binding_id, *key, PAGE)

        def last_of(rows: list[Any]) -> tuple[str | None, str | None]:
            return _key_in(rows[-1][0])

        start: tuple[str | None, str | None] = (None, None)
        async with aclosing(read_ahead(page_after, start, last_of)) as pages:
            async for rows in pages:
                yield [hashed for (hashed,) in rows]


def _key_in(hashed: bytes) -> tuple[str, str]:
    """Subject and item, which stand first, each with its length before it."""
    item_at = 8 + int.from_bytes(hashed[:8], "big")
    document_at = item_at + 8 + int.from_bytes(hashed[item_at : item_at + 8], "big")
    return hashed[8:item_at].decode(), hashed[item_at + 8 : document_at].decode()
