"""Which kinds and objects a ledger knows: for a name that was mistyped, not for an audit."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.plan.canonical import canonical_json_text
from ledger.store.session import Session

_AMONG = 200_000
"""Lines that are looked through, of the plans that were committed last."""


class KnownObjectQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def known_kinds(self, binding_id: int, *, among: int) -> list[str]:
        """The kinds in the first ``among`` lines of the plans that were committed last, by name."""
        return [row["kind"] for row in await self._session.rows("known_kinds", binding_id, among)]

    async def known_lines(self, binding_id: int, kind: str, *, most: int, holding: Sequence[str] = ()) -> list[bytes]:
        """Lines of operations on objects of a kind, of the plans that were committed last.

        Args:
            binding_id: where.
            kind: of the objects.
            most: lines at most.
            holding: texts of which each stands somewhere in the line, as a JSON string has them.
        """
        texts = [f'"kind":{canonical_json_text(kind)}', *(canonical_json_text(text)[1:-1] for text in holding)]
        return [
            row["line"].encode() for row in await self._session.rows("known_lines", binding_id, texts, most, _AMONG)
        ]
