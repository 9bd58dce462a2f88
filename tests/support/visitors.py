"""People who look at the pages: a client with a cookie, as a browser has it, without a browser."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from ledger.api.tokens import Role
from tests.support.api import Served

ORIGIN = "http://api.example"
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')


def hidden_fields(page: str) -> dict[str, str]:
    """The hidden fields of the forms on a page."""
    return {name: html.unescape(value) for name, value in _HIDDEN.findall(page)}


@dataclass
class Visitor:
    """Somebody, logged in or not."""

    client: httpx.AsyncClient

    async def get(self, path: str, **options: Any) -> httpx.Response:
        """A page."""
        return await self.client.get(path, **options)

    async def part(self, path: str) -> httpx.Response:
        """What htmx fetches."""
        return await self.client.get(path, headers={"HX-Request": "true"})

    async def send(self, path: str, fields: dict[str, str], *, origin: str = ORIGIN) -> httpx.Response:
        """A form, as a browser sends it."""
        headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin" if origin == ORIGIN else "cross-site"}
        return await self.client.post(path, data=fields, headers=headers)

    async def form(self, page: str) -> dict[str, str]:
        """The hidden fields of the forms on a page."""
        return hidden_fields((await self.get(page)).text)

    async def log_in(self, token: str, there: str = "/") -> httpx.Response:
        """Log in with a token."""
        return await self.send("/login", {"token": token, "next": there})


@asynccontextmanager
async def visitor(site: Served, role: Role | None, *, origin: str = ORIGIN) -> AsyncIterator[Visitor]:
    """Somebody with a role, or who did not log in."""
    transport = httpx.ASGITransport(app=site.app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=origin) as client:
        somebody = Visitor(client)
        if role is not None:
            answer = await somebody.log_in(site.tokens[role])
            assert answer.status_code == 303, answer.text
        yield somebody
