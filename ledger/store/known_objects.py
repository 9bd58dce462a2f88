"""Which kinds and objects a ledger knows: for a name that was mistyped, not for an audit."""

from __future__ import annotations

from ledger.plan.canonical import canonical_json_text
from ledger.store.session import Session


class KnownObjectQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def known_kinds(self, binding_id: int, *, among: int) -> list[str]:
        """The kinds in the first ``among`` lines of the plans that were committed last, by name."""
        return [row["kind"] for row in await self._session.rows("known_kinds", binding_id, among)]

    async def known_lines(self, binding_id: int, kind: str, *, most: int) -> list[bytes]:
        """Up to ``most`` lines of operations on objects of a kind, of the plans that were committed last."""
        spelt = f'"kind":{canonical_json_text(kind)}'
        return [row["line"].encode() for row in await self._session.rows("known_lines", binding_id, spelt, most)]
