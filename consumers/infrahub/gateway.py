"""One client of one Infrahub, opened for one run and closed with it.

infrahub-sdk supplies configuration, authentication, URL quoting and the schema; :class:`PooledTransport` sits under it.
All GraphQL goes through :meth:`InfrahubGateway.read` and :meth:`InfrahubGateway.write`: constant text, values in
variables, one operation a request.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import httpx
import tenacity
from infrahub_sdk import InfrahubClient
from infrahub_sdk.types import HTTPMethod

from consumers.infrahub.answers import Answer, Reply, Shape, read_answer
from consumers.infrahub.classification import advice_while_planning, classify
from consumers.infrahub.errors import DestinationNotAnsweringError, DestinationReadError
from consumers.infrahub.exchange import CLEAN, Exchange, FailedExchange
from consumers.infrahub.observation import observe
from consumers.infrahub.redaction import Redactor
from consumers.infrahub.settings import InfrahubSettings
from consumers.infrahub.transport import PooledTransport, only_reads

_MAX_ERRORS_SHOWN = 20
_BODY_SHOWN = 300
"""Characters of a body that is no GraphQL: enough to recognise a proxy's page."""

T = TypeVar("T")


def _never_ran(exchange: Exchange) -> bool:
    return exchange.never_ran


def _may_pass(exchange: Exchange) -> bool:
    """Whether a *read* is worth another try: a lost answer or a server fault as well, it changed nothing."""
    return exchange.may_pass


class InfrahubGateway:
    """Sends GraphQL to one branch, and sends again what may be (design 7.5).

    Within the bounds of the settings: of a write what provably never ran and nothing else, of a read also what may go
    better the next time. The dispatch guard is asked before each try (G2). ``planning`` says that there is no run yet:
    then nobody is told to resume one.
    """

    def __init__(
        self,
        client: InfrahubClient,
        settings: InfrahubSettings,
        *,
        requester: PooledTransport | None = None,
        planning: bool = False,
        patience: float = math.inf,
    ) -> None:
        """``requester`` is what lies below ``client``; :meth:`get` and :meth:`leave_connections` ask it directly.

        A read is not begun again when ``patience`` seconds have passed since its first try: a server that is silent
        must not hold up the end of a run once for every attempt.
        """
        self.client = client
        self._patience = patience
        self.settings = settings
        self._requester = requester
        self._planning = planning
        self._redactor = Redactor(settings.secrets)

    async def write(self, mutation: str, variables: Mapping[str, Any]) -> Reply:
        """Send one document that may write; what came of it, a clean answer or not, of the last try.

        Again is sent what provably never ran: a refused connection, an unknown host, an answer marked as shed.
        """
        try:
            data = await self._retrying(_never_ran, math.inf, self._execute, mutation, variables)
        except FailedExchange as failed:
            return Reply(failed.exchange, read_answer(failed.exchange))
        return Reply(CLEAN, Answer(Shape.DATA, data=data))

    async def leave_connections(self) -> None:
        """Send the next request over a new connection: the server may be about to close the present one."""
        if self._requester is not None:
            await self._requester.leave_connections()

    async def read(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one document that only reads; ``data`` of a clean answer.

        Raises:
            FailedExchange: of the last try, for everything that is no clean answer.
        """
        if not only_reads(query):
            raise ValueError("a document that may write is not asked again like a query")
        return await self.reading(self._execute, query, variables)

    async def get(self, path: str) -> httpx.Response:
        """One GET of the server's own, with the token.

        Raises:
            FailedExchange: of the last try, for everything that is no JSON object with HTTP 200.
        """
        if self._requester is None:
            raise RuntimeError("this gateway was made without what lies below its client")
        token = self.settings.token
        headers = {} if token is None else {"X-INFRAHUB-KEY": token.get_secret_value()}
        url = f"{self.settings.url}{path}"
        allowed = math.ceil(self.settings.request_timeout)
        return await self.reading(self._requester, url, HTTPMethod.GET, headers, allowed)

    async def reading(self, call: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """Run a call of the client that only reads.

        Raises:
            FailedExchange: of the last try.
        """
        return await self._retrying(_may_pass, self._patience, call, *arguments)

    async def _retrying(
        self, again: Callable[[Exchange], bool], patience: float, call: Callable[..., Awaitable[T]], *arguments: Any
    ) -> T:
        """Run ``call`` until it ends in something that is not worth another try; bounded by the settings."""
        began, number, sent = time.monotonic(), 0, False
        while True:
            number += 1
            try:
                return await call(*arguments)
            except FailedExchange as failed:
                exchange = replace(failed.exchange, earlier_sent=sent)
                is_late = time.monotonic() - began >= patience
                if is_late or number >= self.settings.attempts or not again(exchange):
                    raise FailedExchange(exchange) from failed
            sent = exchange.sent
            await asyncio.sleep(self._wait(number, exchange))

    async def _execute(self, query: str, variables: Mapping[str, Any]) -> Mapping[str, Any]:
        data: Mapping[str, Any] = await self.client.execute_graphql(
            query, variables=dict(variables), branch_name=self.settings.branch
        )
        return data

    def _wait(self, number: int, exchange: Exchange) -> float:
        """Seconds between that try and the next: what the server asked for, or by chance up to a bound that doubles."""
        state = tenacity.RetryCallState(tenacity.AsyncRetrying(), None, (), {})
        state.attempt_number = number
        bound = self.settings.retry_wait_max
        backoff = tenacity.wait_random_exponential(multiplier=self.settings.retry_wait, max=bound)
        return min(max(_retry_after(exchange), backoff(state)), bound)

    def shown(self, text: str) -> str:
        """A short piece of foreign text, fit to be stored."""
        return self._redactor.text(text, limit=_BODY_SHOWN)

    def code_of(self, answer: Answer) -> str | None:
        """The code of the first error, unless a secret is written where a code should be (G12)."""
        code = answer.errors[0].code if answer.errors else None
        return None if code is None or self._redactor.holds_secret(code) else code

    def not_read(self, exchange: Exchange, *, checked: str, expected: str) -> DestinationReadError:
        """The error for a read that failed: away, where it may go better later; else a verdict, with what to do."""
        answer = read_answer(exchange)
        row = classify(observe(exchange, answer, None))
        advice = advice_while_planning(row) if self._planning else row.next_action
        found = self.describe(exchange, answer)
        if not exchange.may_pass:
            return DestinationReadError(checked=checked, expected=expected, found=found, next_action=advice)
        waiting = "" if self._planning else "; an order that was given stays open until then"
        return DestinationNotAnsweringError(
            checked=checked,
            expected=expected,
            found=found,
            next_action=f"check that the server is up and reachable, and try again when it answers{waiting}",
        )

    def describe(self, exchange: Exchange, answer: Answer | None = None) -> str:
        """What came back, in words fit to be stored: all error messages, masked, escaped, then cut (G12)."""
        answer = answer or read_answer(exchange)
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


def _retry_after(exchange: Exchange) -> float:
    """Seconds that the server asked for; 0 where it named none that can be read."""
    text = exchange.headers.get("retry-after", "").strip()
    return float(text) if text.isdecimal() and len(text) <= 6 else 0.0
