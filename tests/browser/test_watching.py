"""What the tests of the pages look for is found where it is: each fault on a page made for it."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, Route

from ledger.api.gate import POLICY
from tests.browser.conftest import ON_ONE_LOOP
from tests.support.browser import NARROW, Watched, opened

pytestmark = ON_ONE_LOOP

ORIGIN = "http://pages.example"
GOOD = "<!doctype html><html lang=en><title>A page</title><main><h1>A page</h1><p>Words.</p></main>"


async def _shown(watched: Watched, body: str) -> None:
    async def answer(route: Route) -> None:
        await route.fulfill(body=body, content_type="text/html", headers={"Content-Security-Policy": POLICY})

    await watched.page.route(f"{ORIGIN}/**", answer)
    await watched.open("/")
    await watched.page.wait_for_load_state("networkidle")


async def test_a_page_without_faults_passes(browser: Browser) -> None:
    async with opened(browser, ORIGIN, size=NARROW) as watched:
        await _shown(watched, GOOD)
        await watched.require_clean()
        await watched.require_accessible()
        await watched.require_no_sideways_scroll()


@pytest.mark.parametrize(
    "fault",
    ["<script>window.ran = 1</script>", "<p onclick='x()'>Words</p>", "<img alt='' src='http://elsewhere.example/a'>",
     "<style>p { color: red }</style>"],
)  # fmt: skip
async def test_script_style_and_addresses_of_others_are_noticed(browser: Browser, fault: str) -> None:
    async with opened(browser, ORIGIN) as watched:
        await _shown(watched, GOOD + fault)
        with pytest.raises(AssertionError):
            await watched.require_clean()


async def test_what_no_screen_reader_could_tell_is_noticed(browser: Browser) -> None:
    async with opened(browser, ORIGIN) as watched:
        await _shown(watched, GOOD + "<input name=unnamed>")
        with pytest.raises(AssertionError, match="label"):
            await watched.require_accessible()


async def test_colours_that_are_too_much_alike_are_noticed_in_each_scheme(browser: Browser) -> None:
    """The page's own colours are those of the browser: in the dark scheme grey on grey is still a fault."""
    faint = GOOD.replace("<p>", "<p><font color=#777777>faint</font> ")
    dark = faint.replace("<title>", "<meta name=color-scheme content='light dark'><title>")
    async with opened(browser, ORIGIN, scheme="dark") as watched:
        await _shown(watched, dark)
        with pytest.raises(AssertionError, match="color-contrast"):
            await watched.require_accessible(colours_alone=True)


async def test_a_page_that_is_too_wide_is_noticed(browser: Browser) -> None:
    async with opened(browser, ORIGIN, size=NARROW) as watched:
        await _shown(watched, GOOD + f"<p>{'x' * 400}</p>")
        with pytest.raises(AssertionError, match="window of 380"):
            await watched.require_no_sideways_scroll()
