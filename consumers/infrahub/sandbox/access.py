"""Who may do what: one token for all, one that only reads, and anonymous reads, as with a server's default settings."""

from __future__ import annotations

import hmac
from typing import Literal

from starlette.requests import Request

Credential = Literal["good", "reader", "wrong", "none"]


class Access:
    """Judges the credential of a request."""

    def __init__(self, token: str, reader_token: str | None = None) -> None:
        """``reader_token`` is that of an account without a role."""
        self._credentials: list[tuple[bytes, Credential]] = [(token.encode(), "good")]
        if reader_token is not None:
            self._credentials.append((reader_token.encode(), "reader"))

    def credential(self, request: Request) -> Credential:
        """``wrong`` is refused everywhere, ``none`` and ``reader`` may not write."""
        given = request.headers.get("x-infrahub-key")
        if not given:
            return "wrong" if request.headers.get("authorization") else "none"
        # Header values are Latin-1 on the wire.
        sent = given.encode("latin-1", "replace")
        return next((means for token, means in self._credentials if hmac.compare_digest(sent, token)), "wrong")
