"""What became of one HTTP request: the facts on which every later claim rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import httpx


class Event(StrEnum):
    """How a request ended, seen from this side of the wire."""

    REFUSED = "no connection: refused, or no such host"
    CONNECT_TIMEOUT = "no connection in time"
    NO_FREE_CONNECTION = "no free pooled connection in time"
    DEADLINE_UNSENT = "the deadline passed before the request was sent"
    TIMED_OUT = "no answer in time"
    CONNECTION_LOST = "the connection broke before a whole answer"
    UNDECODABLE = "an answer whose content encoding is broken"
    TOO_LARGE = "an answer larger than is read"
    CREDENTIAL_ECHOED = "an answer that holds the credential it was asked with"
    OTHER_FAULT = "an unforeseen fault of the HTTP client"
    ANSWERED = "an answer"


NEVER_SENT = frozenset({Event.REFUSED, Event.CONNECT_TIMEOUT, Event.NO_FREE_CONNECTION, Event.DEADLINE_UNSENT})
"""Events that prove that no byte of the request left."""

WORTH_ASKING_AGAIN = frozenset(Event) - {Event.ANSWERED, Event.TOO_LARGE, Event.CREDENTIAL_ECHOED}
"""Events after which a *read* may go better the next time."""

_BY_EXCEPTION: tuple[tuple[type[Exception], Event], ...] = (
    (httpx.ConnectTimeout, Event.CONNECT_TIMEOUT),
    (httpx.PoolTimeout, Event.NO_FREE_CONNECTION),
    (httpx.ConnectError, Event.REFUSED),
    (httpx.TimeoutException, Event.TIMED_OUT),
    (httpx.NetworkError, Event.CONNECTION_LOST),
    (httpx.RemoteProtocolError, Event.CONNECTION_LOST),
    (httpx.DecodingError, Event.UNDECODABLE),
    (httpx.RequestError, Event.OTHER_FAULT),
)
"""First match wins: httpx derives the three that were never sent from the general ones."""


def event_of(error: httpx.RequestError) -> Event:
    """The event that an httpx error stands for."""
    return next(event for kind, event in _BY_EXCEPTION if isinstance(error, kind))


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it.

    Attributes:
        event: how it ended.
        status: the HTTP status, None without an answer.
        headers: of the answer, lower-case names.
        body: of the answer, decoded from its content encoding.
        detail: the client's own words where there is no answer; not yet redacted.
        earlier_sent: whether an earlier try of the same call left, which the server then shed.
    """

    event: Event
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    detail: str = ""
    earlier_sent: bool = False

    @property
    def sent(self) -> bool:
        """False only where it is proven that no try of the request left."""
        return self.earlier_sent or self.event not in NEVER_SENT

    @property
    def shed(self) -> bool:
        """Whether the server marked the answer as given before running anything (429 of its admission control)."""
        return self.status == 429 and self.headers.get("x-infrahub-admission", "").strip().lower() == "shed"

    @property
    def never_ran(self) -> bool:
        """Whether the request may be sent again within one attempt (design 7.5): no connection, or marked as shed."""
        return self.event is Event.REFUSED or self.shed

    @property
    def may_pass(self) -> bool:
        """Whether the same *read* may go better later: no answer, a fault of the server, or a limit on requests."""
        status = self.status or 0
        return self.event in WORTH_ASKING_AGAIN or status >= 500 or status == 429


CLEAN = Exchange(Event.ANSWERED, status=200)
"""What is left to say of an exchange whose answer went through infrahub-sdk: the transport lets none but these pass."""


class FailedExchange(Exception):
    """A request that did not end in a clean answer. Internal: the gateway's callers turn it into a named error."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__(str(exchange.event))
        self.exchange = exchange
