"""How much one caller may ask for, and how fast."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pydantic import BaseModel, ConfigDict, Field

from ledger.api.errors import TooManyAuditsError, TooManyRequestsError, TooManyStreamsError

MAX_PAGE = 500
MAX_NESTING = 32
_KNOWN = 10_000
"""Callers that are tracked; the least recently seen one is dropped first and starts again with a full bucket."""


class ApiLimits(BaseModel):
    """The table ``[api]`` of the settings."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    requests_per_second: float = Field(default=50.0, gt=0, le=1e6, description="of one token, or in local mode of all")
    burst: int = Field(default=200, ge=1, le=10**6, description="requests at once above that rate")
    failed_logins_per_minute: float = Field(default=30.0, gt=0, le=1e6, description="of one address, then 429")
    session_hours: float = Field(default=8.0, gt=0, le=24 * 30, description="how long a login to the pages lasts")
    secure_cookies: bool = Field(default=False, description="something in front speaks TLS: mark cookies for it alone")
    hsts_seconds: int = Field(
        default=0,
        ge=0,
        le=2 * 366 * 86_400,
        description="for which browsers speak nothing but TLS to this host (RFC 6797); 0 leaves that open",
    )
    max_body_bytes: int = Field(default=512 * 1024, ge=1024, le=16 * 1024 * 1024)
    body_seconds: float = Field(default=30.0, gt=0, le=3600, description="within which a body has to come")
    max_streams: int = Field(default=100, ge=1, le=10_000, description="event streams that are open at once")
    max_streams_each: int = Field(default=60, ge=1, le=10_000, description="of one token")
    stream_poll_seconds: float = Field(default=0.25, gt=0, le=60)
    stream_send_seconds: float = Field(default=30.0, gt=0, le=3600, description="after which a slow reader is let go")
    max_audits: int = Field(default=3, ge=1, le=100, description="audits that run at once, each on a thread of its own")
    max_audits_each: int = Field(default=2, ge=1, le=100, description="of one token")
    audit_seconds: float = Field(default=900.0, gt=0, le=86_400, description="after which an audit is ended")
    max_export_bytes: int = Field(default=20 * 1024**3, ge=1, description="of the files of an export, while it is made")
    cors_origins: tuple[str, ...] = Field(default=(), description="pages of other sites that may read; none by default")
    host_names: tuple[str, ...] = Field(default=(), description="names under which this server answers; any by default")


class RateLimiter:
    """A bucket of requests for each caller, filled again at a steady rate."""

    def __init__(self, per_second: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Take one request out of a caller's bucket.

        Raises:
            TooManyRequestsError: it is empty; its header says when to come again.
        """
        now = self._clock()
        left, then = self._buckets.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._per_second)
        refused = left < 1.0
        self._buckets[caller] = (left if refused else left - 1.0, now)
        if len(self._buckets) > _KNOWN:
            self._buckets.popitem(last=False)
        if refused:
            raise TooManyRequestsError(
                checked="how fast requests come",
                expected=f"{self._per_second:g} a second of one caller, {self._burst:g} at once",
                found="more",
                next_action="wait as long as the header Retry-After says",
                seconds=max(1, round((1.0 - left) / self._per_second)),
            )


class Slots:
    """Counts what is open at once, and by whom."""

    def __init__(self, most: int, most_each: int) -> None:
        self._most = most
        self._most_each = most_each
        self._open: dict[str, int] = {}

    @property
    def open(self) -> int:
        """How many are open."""
        return sum(self._open.values())

    def require_free(self, caller: str) -> None:
        """Refuse one more.

        Raises:
            TooManyRequestsError: as many are open as may be; of the class of these slots.
        """
        if self.open >= self._most or self._open.get(caller, 0) >= self._most_each:
            raise self._refused(f"at most {self._most} in all, {self._most_each} of one token")

    def _refused(self, expected: str) -> TooManyRequestsError:
        raise NotImplementedError

    @contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """One is open."""
        self._open[caller] = self._open.get(caller, 0) + 1
        try:
            yield
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]


class StreamSlots(Slots):
    """Event streams."""

    def _refused(self, expected: str) -> TooManyStreamsError:
        return TooManyStreamsError(
            checked="the open event streams",
            expected=expected,
            found="as many",
            next_action="close one, or raise max_streams in the settings",
            seconds=10,
        )


class AuditSlots(Slots):
    """Audits."""

    def _refused(self, expected: str) -> TooManyAuditsError:
        return TooManyAuditsError(
            checked="the audits that run",
            expected=expected,
            found="as many",
            next_action="wait until one has ended, use the command line, or raise max_audits in the settings",
            seconds=10,
        )
