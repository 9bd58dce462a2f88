"""Who may do what: one token, and anonymous reads, as on a server with default settings."""

from __future__ import annotations

import hmac
from typing import Literal

from starlette.requests import Request

Credential = Literal["good", "wrong", "none"]


class Access:
    """Judges the credential of a request."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def credential(self, request: Request) -> Credential:
        """``wrong`` is refused everywhere, ``none`` may only read."""
        given = request.headers.get("x-infrahub-key")
        if not given:
            return "wrong" if request.headers.get("authorization") else "none"
        # Header values are Latin-1 on the wire.
        return "good" if hmac.compare_digest(given.encode("latin-1", "replace"), self._token) else "wrong"
