"""The live projections as an audit reads them: everything that they hold, page by page, without moving them."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ledger.store.session import Session

_PAGE = 5_000


class LiveProjectionQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def live_cursor(self, projection: str, version: int, binding_id: int) -> tuple[int, bytes] | None:
        """The last event that a projection has taken, and its hash; None where it was never computed."""
        row = await self._session.row("projection_cursor", projection, version, "live", binding_id)
        return None if row is None else (row["position"], row["hash"])

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
