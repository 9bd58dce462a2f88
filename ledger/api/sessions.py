"""Sessions of people who look at pages: a token is shown once, and a cookie stands for it from then on.

A cookie is an opaque random id; what it stands for is kept in this process and nowhere else, so neither a stolen backup
nor a reader of the database can make one. A restart ends all sessions: people log in again. The token is looked up with
each request all the same, so that a revoked one ends its sessions at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import cookie_parser

MOST = 10_000
MOST_EACH = 20
"""Sessions of one token; the next one ends the oldest."""


@dataclass(frozen=True, slots=True)
class Session:
    """What a cookie stands for. ``form_key`` has to come with every form; ``ends`` by this process's clock."""

    token_id: str | None
    form_key: str
    ends: float

    def has_key(self, given: str) -> bool:
        """Whether a form came from a page of this session."""
        return hmac.compare_digest(self.form_key.encode(), given.encode("utf-8", "replace"))


class Sessions:
    """The sessions of one process."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """``seconds``: how long a session lasts, from its login on, however busy it is."""
        self.seconds = seconds
        self._clock = clock
        self._open: OrderedDict[bytes, Session] = OrderedDict()

    def begin(self, token_id: str) -> tuple[str, Session]:
        """A new session of a token: what goes into the cookie, and what it stands for."""
        cookie = secrets.token_urlsafe(32)
        session = Session(token_id, secrets.token_urlsafe(32), self._clock() + self.seconds)
        self._make_room(token_id)
        self._open[_key(cookie)] = session
        return cookie, session

    def find(self, cookie: str) -> Session | None:
        """What a cookie stands for; None where it stands for nothing, or for nothing any more."""
        session = self._open.get(_key(cookie))
        if session is not None and session.ends <= self._clock():
            self.end(cookie)
            return None
        return session

    def end(self, cookie: str) -> None:
        """Log out; again is harmless."""
        self._open.pop(_key(cookie), None)

    def _make_room(self, token_id: str) -> None:
        """The oldest stand first, and all last equally long: what has run out is at the front."""
        now = self._clock()
        while self._open and (next(iter(self._open.values())).ends <= now or len(self._open) >= MOST):
            self._open.popitem(last=False)
        own = [key for key, session in self._open.items() if session.token_id == token_id]
        for key in own[: max(0, len(own) - MOST_EACH + 1)]:
            del self._open[key]


def local_session() -> Session:
    """The one session of local mode, in which nobody logs in: its key still tells our forms from others'."""
    return Session(None, secrets.token_urlsafe(32), float("inf"))


def cookie_name(*, secure: bool) -> str:
    """The name of the cookie; browsers take ``__Host-`` only over TLS, for one host, and from no subdomain."""
    return "__Host-apply-ledger" if secure else "apply-ledger"


def cookie_in(header: str, *, secure: bool) -> str | None:
    """The session's cookie in a header ``Cookie``."""
    # The header also brings what other applications of this host have set, however odd; the parser of the standard
    # library stops there, and what is after it is lost.
    return cookie_parser(header).get(cookie_name(secure=secure))


def _key(cookie: str) -> bytes:
    """Sessions are found by a digest: how long a look-up takes says nothing about an id."""
    return hashlib.sha256(cookie.encode("utf-8", "replace")).digest()
