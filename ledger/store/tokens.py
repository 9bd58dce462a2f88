"""Tokens of the HTTP API as stored: a name, a role and a digest, never the token."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ledger.store.session import Session

TokenRole = Literal["reader", "auditor", "operator"]


@dataclass(frozen=True, slots=True)
class StoredToken:
    """One token. ``works``: neither revoked nor run out, by the database's clock. ``digest`` is 32 bytes of sha256."""

    token_id: str
    name: str
    role: TokenRole
    digest: bytes
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    works: bool


class TokenQueries:
    """Part of :class:`ledger.store.served.ServedLedger`."""

    _session: Session

    async def create_token(
        self, token_id: str, *, name: str, role: TokenRole, digest: bytes, seconds: float | None
    ) -> datetime | None:
        """Store a new token; returns until when it works, None for one without end.

        Args:
            token_id: 16 hexadecimal digits, the part of the token that may be shown.
            name: for people, 1 to 128 bytes; no other token that works has it.
            role: what its bearer may ask for.
            digest: sha256 of the token.
            seconds: how long it works, at most ten years, or None.

        Raises:
            TokenNameTakenError: a token that works has this name.
            InvalidCallError: the time is not valid.
        """
        until: datetime | None = await self._session.value("create_api_token", token_id, name, role, digest, seconds)
        return until

    async def revoke_token(self, token_id: str) -> bool:
        """End a token; again is harmless. False if there is none with this id."""
        return bool(await self._session.value("revoke_api_token", token_id))

    async def note_token_used(self, token_id: str) -> None:
        """Note that a token was used; at most once a minute something is written."""
        await self._session.value("use_api_token", token_id)

    async def token(self, token_id: str) -> StoredToken | None:
        """A token by its id, also one that works no more."""
        row = await self._session.row("api_token", token_id)
        return None if row is None else _token(row)

    async def tokens(self) -> list[StoredToken]:
        """All tokens, oldest first."""
        return [_token(row) for row in await self._session.rows("api_tokens")]


def _token(row: Any) -> StoredToken:
    return StoredToken(**dict(row))
