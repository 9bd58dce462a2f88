"""A headless Chromium: one for a session of tests, and pages that write down whatever must never happen on one."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlsplit

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Request, async_playwright

Scheme = Literal["light", "dark"]
WIDE, NARROW = (1280, 900), (380, 800)
SCHEMES: tuple[Scheme, ...] = ("light", "dark")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""Root has no sandbox, a test machine no screen and no way out: the browser must not look for either."""

PATIENCE = 30_000
"""Milliseconds after which something that does not come to a page is a failure."""

_VIOLATIONS = """
window.__violations = [];
document.addEventListener('securitypolicyviolation', (found) => {
  window.__violations.push(`${found.violatedDirective} ${found.blockedURI} ${found.sourceFile}:${found.lineNumber}`);
});
"""
"""Runs before anything of a page does: a report that nobody listens for is lost."""

_MOST_TABS = 60
_FOCUSED = """
(() => {
  const found = document.activeElement;
  const style = getComputedStyle(found);
  const called = found.getAttribute('aria-label') ?? found.labels?.[0]?.innerText ?? found.innerText ?? '';
  return [called.trim(), style.outlineStyle !== 'none' && style.outlineWidth !== '0px'];
})()
"""
"""By what name a person knows what has the focus, and whether it is to be seen."""

_OPTIONS: dict[str, Any] = {"resultTypes": ["violations"]}
_COLOURS: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}


class NoBrowserError(Exception):
    """No Chromium was found."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """The Chromium of the system.

    Raises:
        NoBrowserError: there is none.
    """
    path = shutil.which("chromium")
    if path is None:
        raise NoBrowserError("no chromium: bash tests/support/require_chromium.sh installs it")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        await browser.close()


@dataclass
class Watched:
    """A page and what went wrong on it.

    Attributes:
        page: of the browser.
        origin: the only one that may be asked for anything.
        wrong: requests to other origins, what the console complained of, scripts that threw, failed requests.
    """

    page: Page
    origin: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("request", self._asked)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.wrong.append(f"a script threw: {error}"))

    def _asked(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.wrong.append(f"asked {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not _is_status(message.text):
            self.wrong.append(f"the console: {message.text}")

    async def open(self, path: str, *, status: int = 200) -> None:
        """Load a page of the server; its answer has to have this status."""
        response = await self.page.goto(self.origin + path)
        assert response is not None
        assert response.status == status, f"{path}: {response.status}"

    async def tab_to(self, name: str) -> None:
        """Press Tab until what is called by this name has the focus, and shows that it has."""
        seen = []
        for _ in range(_MOST_TABS):
            await self.page.keyboard.press("Tab")
            called, shown = await self.page.evaluate(_FOCUSED)
            seen.append(called)
            if called == name:
                assert shown, f"nobody sees that {name!r} has the focus"
                return
        raise AssertionError(f"the key Tab does not lead to {name!r}, but to {seen}")

    async def violations(self) -> list[str]:
        """What the content security policy kept from happening."""
        found: list[str] = await self.page.evaluate("window.__violations")
        return found

    async def require_clean(self) -> None:
        """Fail where anything went wrong on any page since this one was opened."""
        assert await self.violations() == []
        assert self.wrong == []

    async def require_accessible(self, *, colours_alone: bool = False) -> None:
        """Fail where axe-core finds anything; with the other scheme's colours nothing but they has to be looked at."""
        results = await Axe().run(self.page, options=_OPTIONS | (_COLOURS if colours_alone else {}))
        found = [
            f"{rule['id']}: {node['target']} {node['failureSummary']}"
            for rule in results.response["violations"]
            for node in rule["nodes"]
        ]
        assert found == [], self.page.url + "\n" + "\n".join(found)

    async def require_no_sideways_scroll(self) -> None:
        """Fail where the page is wider than its window."""
        width, inner = await self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert width <= inner, f"{self.page.url}: {width} in a window of {inner}"


def _is_status(text: str) -> bool:
    """Chromium writes every answer from 400 on into the console; tests ask for those statuses themselves."""
    return text.startswith("Failed to load resource: the server responded with a status of")


@asynccontextmanager
async def opened(
    browser: Browser, origin: str, *, size: tuple[int, int] = WIDE, scheme: Scheme = "light"
) -> AsyncIterator[Watched]:
    """A new window with nothing remembered in it."""
    context = await new_context(browser, size=size, scheme=scheme)
    try:
        yield Watched(await context.new_page(), origin)
    finally:
        await context.close()


async def new_context(browser: Browser, *, size: tuple[int, int], scheme: Scheme) -> BrowserContext:
    """A context of this size and colour scheme, in which violations of the policy are remembered."""
    context = await browser.new_context(
        viewport={"width": size[0], "height": size[1]},
        color_scheme=scheme,
        reduced_motion="reduce",
        timezone_id="Europe/Berlin",
        locale="en-GB",
    )
    await context.add_init_script(_VIOLATIONS)
    return context
