"""Who asks: by a token, or by the session of somebody who logged in with one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import Scope

from ledger.api.errors import UnauthenticatedError
from ledger.api.limits import RateLimiter
from ledger.api.metrics import ApiMetrics
from ledger.api.sessions import Session, Sessions, cookie_in, local_session
from ledger.api.tokens import Caller, Role, belongs, token_id_of
from ledger.store.errors import LedgerPermissionError
from ledger.store.tokens import StoredToken, TokenQueries

LOCAL = Caller("local", Role.OPERATOR, None)
_OWN_SITE = frozenset({"same-origin", "none"})


@dataclass(frozen=True, slots=True)
class Callers:
    """Finds out who asks.

    Attributes:
        tokens: where tokens are looked up, or None in local mode: then everybody on this machine is an operator.
        rates: of callers that are known.
        failures: of addresses whose tokens do not work.
        metrics: what is counted.
        sessions: of people who logged in.
        tls_in_front: something else speaks TLS to browsers, and plain HTTP to this process.
        local: the session of local mode.
    """

    tokens: TokenQueries | None
    rates: RateLimiter
    failures: RateLimiter
    metrics: ApiMetrics
    sessions: Sessions
    tls_in_front: bool = False
    local: Session = field(default_factory=local_session)

    async def of_program(self, scope: Scope, headers: Headers) -> Caller:
        """Who asks the API: by the token in the header, or, only to read, by the cookie of a page of this server.

        Raises:
            UnauthenticatedError: no token, or none that works.
            TooManyRequestsError: of one token, or of an address whose tokens do not work.
        """
        if self.tokens is None:
            self.rates.take("local")
            return LOCAL
        if "authorization" not in headers and scope["method"] in ("GET", "HEAD") and _own_site(headers):
            session = self._session(scope, headers)
            caller = None if session is None else await self._by_id(session.token_id)
            if caller is not None:
                return caller
        scheme, _, text = headers.get("authorization", "").partition(" ")
        given = text.strip() if scheme.lower() == "bearer" else ""
        return await self.by_token(given, address_of(scope), given="authorization" in headers)

    async def of_person(self, scope: Scope, headers: Headers) -> tuple[Caller, Session]:
        """Who asks for a page, and in which session.

        Raises:
            UnauthenticatedError: no session, or none that lasts.
            TooManyRequestsError: of one token.
        """
        if self.tokens is None:
            self.rates.take("local")
            return LOCAL, self.local
        session = self._session(scope, headers)
        caller = None if session is None else await self._by_id(session.token_id)
        if session is None or caller is None:
            raise unauthenticated(given=session is not None)
        return caller, session

    async def by_token(self, text: str, address: str, *, given: bool = True) -> Caller:
        """The bearer of a token; found out before anything else is, also whether an address exists.

        Failures of an address refuse nobody whose token works: many may come through one proxy.

        Args:
            text: the token.
            address: where it came from.
            given: whether anything was said at all.

        Raises:
            UnauthenticatedError: it is none that works.
            TooManyRequestsError: of one token, or of an address whose tokens do not work.
        """
        token_id = token_id_of(text)
        stored = None if token_id is None or self.tokens is None else await self.tokens.token(token_id)
        if stored is None or not belongs(text, stored):
            self.failures.take(address)
            self.metrics.refused_tokens.inc()
            raise unauthenticated(given=given)
        return await self._taken(stored)

    async def still_works(self, caller: Caller, scope: Scope, headers: Headers) -> bool:
        """Whether who was let in would be let in now, by the same words; counts as no request.

        For an answer that goes on for hours: what ends a token or a session has to end that too.

        Raises:
            StoreError: the token cannot be looked up.
        """
        if self.tokens is None or caller.token_id is None:
            return True
        if "authorization" not in headers and self._session(scope, headers) is None:
            return False
        stored = await self.tokens.token(caller.token_id)
        return stored is not None and stored.works

    async def _by_id(self, token_id: str | None) -> Caller | None:
        """The bearer of the token that a session began with, as long as that works."""
        stored = None if token_id is None or self.tokens is None else await self.tokens.token(token_id)
        return await self._taken(stored) if stored is not None and stored.works else None

    async def _taken(self, stored: StoredToken) -> Caller:
        self.rates.take(stored.token_id)
        if self.tokens is not None:
            with suppress(LedgerPermissionError):  # a login role that only reads, for a server that only reads
                await self.tokens.note_token_used(stored.token_id)
        return Caller(stored.name, Role(stored.role), stored.token_id)

    def _session(self, scope: Scope, headers: Headers) -> Session | None:
        cookie = cookie_in(headers.get("cookie", ""), secure=self.speaks_tls(scope))
        return None if cookie is None else self.sessions.find(cookie)

    def speaks_tls(self, scope: Scope) -> bool:
        """Whether the browser at the other end speaks TLS, so that a cookie may be kept to that."""
        return self.tls_in_front or scope["scheme"] == "https"


def address_of(scope: Scope) -> str:
    """Where a request came from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"


def _own_site(headers: Headers) -> bool:
    """Whether a page of another site asks: it gets nothing for a cookie, whatever its browser sends along."""
    return headers.get("sec-fetch-site", "none") in _OWN_SITE


def unauthenticated(*, given: bool) -> UnauthenticatedError:
    """The refusal of who says nothing, or nothing that works."""
    return UnauthenticatedError(
        checked="the header Authorization",
        expected="Bearer, and a token that works",
        found="one that does not work" if given else "none",
        next_action="`apply-ledger token create NAME --role reader` makes one",
    )
