"""One client of one Infrahub, opened for one run and closed with it.

infrahub-sdk supplies configuration, authentication, URL quoting and the schema; :class:`PooledTransport` sits under it.
All GraphQL goes through :meth:`InfrahubGateway.execute`: constant text, values in variables, one operation a request.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import httpx
import tenacity
from infrahub_sdk import InfrahubClient
from infrahub_sdk.types import AsyncRequester, HTTPMethod

from consumers.infrahub.answers import Answer, Shape, read_answer
from consumers.infrahub.classification import advice_while_planning, classify
from consumers.infrahub.errors import DestinationNotAnsweringError, DestinationReadError
from consumers.infrahub.exchange import Exchange, FailedExchange
from consumers.infrahub.observation import observe
from consumers.infrahub.redaction import Redactor
from consumers.infrahub.settings import InfrahubSettings

_MAX_ERRORS_SHOWN = 20
_BODY_SHOWN = 300
"""Characters of a body that is no GraphQL: enough to recognise a proxy's page."""

T = TypeVar("T")


def _never_ran(error: BaseException) -> bool:
    return isinstance(error, FailedExchange) and error.exchange.never_ran


def _passing(error: BaseException) -> bool:
    """Whether a *read* is worth another try."""
    return isinstance(error, FailedExchange) and error.exchange.may_pass


class InfrahubGateway:
    """Sends GraphQL to one branch; retries what provably never ran, and nothing else (design 7.5).

    ``planning`` says that there is no run yet: then nobody is told to resume one.
    """

    def __init__(
        self,
        client: InfrahubClient,
        settings: InfrahubSettings,
        *,
        requester: AsyncRequester | None = None,
        planning: bool = False,
    ) -> None:
        """``requester`` is what lies below ``client``; only :meth:`get` asks it directly."""
        self.client = client
        self.settings = settings
        self._requester = requester
        self._planning = planning
        self._redactor = Redactor(settings.secrets)

    async def execute(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one document and return ``data`` of a clean answer.

        A refused connection, an unknown host and an answer that the server marked as shed are sent again, within the
        bounds of the settings; the dispatch guard is asked before each (G2).

        Raises:
            FailedExchange: of the last try, for everything that is no clean answer.
        """
        return await self.retrying(self._execute_once, query, variables)

    async def read(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a query that is no part of a write; a lost answer or a server fault is asked again, it changed nothing.

        Raises:
            FailedExchange: of the last try, for everything that is no clean answer.
        """
        return await self.retrying(self._execute_once, query, variables, again=_passing)

    async def get(self, path: str) -> httpx.Response:
        """One GET of the server's own, with the token; asked again where it may pass.

        Raises:
            FailedExchange: of the last try, for everything that is no JSON object with HTTP 200.
        """
        if self._requester is None:
            raise RuntimeError("this gateway was made without what lies below its client")
        token = self.settings.token
        headers = {} if token is None else {"X-INFRAHUB-KEY": token.get_secret_value()}
        url = f"{self.settings.url}{path}"
        return await self.retrying(
            self._requester, url, HTTPMethod.GET, headers, math.ceil(self.settings.request_timeout), again=_passing
        )

    async def retrying(
        self,
        call: Callable[..., Awaitable[T]],
        *arguments: Any,
        again: Callable[[BaseException], bool] = _never_ran,
    ) -> T:
        """Run ``call`` until it ends in something that is not worth another try; bounded by the settings."""
        left = False

        async def once() -> T:
            nonlocal left
            try:
                return await call(*arguments)
            except FailedExchange as failed:
                failed.exchange = replace(failed.exchange, earlier_sent=left)
                left = failed.exchange.sent
                raise

        try:
            return await once()
        except FailedExchange as failed:
            if not again(failed):
                raise
            first: FailedExchange | None = failed

        async def later() -> T:
            nonlocal first
            if first is not None:
                known, first = first, None
                raise known
            return await once()

        retries = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(again),
            stop=tenacity.stop_after_attempt(self.settings.attempts),
            wait=self._wait,
            reraise=True,
        )
        return await retries(later)  # its first attempt is the one that was made; most calls need no second one

    async def _execute_once(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        data: Mapping[str, Any] = await self.client.execute_graphql(
            query, variables=dict(variables), branch_name=self.settings.branch
        )
        return data

    def _wait(self, state: tenacity.RetryCallState) -> float:
        backoff = tenacity.wait_random_exponential(
            multiplier=self.settings.retry_wait, max=self.settings.retry_wait_max
        )
        asked = _retry_after(state.outcome.exception() if state.outcome is not None else None)
        return min(max(asked, backoff(state)), self.settings.retry_wait_max)

    def shown(self, text: str) -> str:
        """A short piece of foreign text, fit to be stored."""
        return self._redactor.text(text, limit=_BODY_SHOWN)

    def code_of(self, answer: Answer) -> str | None:
        """The code of the first error, unless a secret is written where a code should be (G12)."""
        code = answer.errors[0].code if answer.errors else None
        return None if code is None or self._redactor.holds_secret(code) else code

    def not_read(self, exchange: Exchange, *, checked: str, expected: str) -> DestinationReadError:
        """The error for a read that failed: away, where it may go better later; else a verdict, with what to do."""
        row = classify(observe(exchange, read_answer(exchange), None))
        advice = advice_while_planning(row) if self._planning else row.next_action
        if not exchange.may_pass:
            return DestinationReadError(
                checked=checked, expected=expected, found=self.describe(exchange), next_action=advice
            )
        waiting = "" if self._planning else "; an order that was given stays open until then"
        return DestinationNotAnsweringError(
            checked=checked,
            expected=expected,
            found=self.describe(exchange),
            next_action=f"check that the server is up and reachable, and try again when it answers{waiting}",
        )

    def describe(self, exchange: Exchange) -> str:
        """What came back, in words fit to be stored: all error messages, masked, escaped, then cut (G12)."""
        answer = read_answer(exchange)
        status = "" if exchange.status in (None, 200) else f"HTTP {exchange.status}"
        if exchange.status is None:
            words = f"{exchange.event} ({exchange.detail})" if exchange.detail else str(exchange.event)
        elif answer.errors:
            words = _listed(answer)
        elif answer.shape in (Shape.NOT_JSON, Shape.NOT_AN_OBJECT, Shape.NEITHER):
            body = exchange.body.decode("utf-8", "backslashreplace")
            words = f"{answer.shape}: {self.shown(body)}"
        else:
            words = str(answer.shape)
        return self._redactor.text(": ".join(part for part in (status, words) if part))


def _listed(answer: Answer) -> str:
    shown = "; ".join(str(error) for error in answer.errors[:_MAX_ERRORS_SHOWN])
    more = len(answer.errors) - _MAX_ERRORS_SHOWN
    return f"{shown}; and {more} more" if more > 0 else shown


def _retry_after(error: BaseException | None) -> float:
    """Seconds that the server asked for; 0 where it named none that can be read."""
    if not isinstance(error, FailedExchange):
        return 0.0
    text = error.exchange.headers.get("retry-after", "").strip()
    return float(text) if text.isdecimal() and len(text) <= 6 else 0.0
