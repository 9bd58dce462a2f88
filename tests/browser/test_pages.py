"""Every page, in light and dark, wide and narrow: nothing on it is wrong, and nothing that was recorded is markup."""

from __future__ import annotations

import unicodedata
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser

from ledger.api.tokens import Role
from ledger.dashboard.application import page_addresses
from tests.browser.conftest import ON_ONE_LOOP, Site, database_of, site_over
from tests.support.browser import NARROW, Watched
from tests.support.page_examples import ALL, EMPTY, EXAMPLES, FOR_NOBODY, NO_PAGES, Example
from tests.support.postgres import PostgresServer

pytestmark = ON_ONE_LOOP


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def window(site: Site) -> AsyncIterator[Watched]:
    """One window for all pages, of somebody who may see them all."""
    opened = await site.window(Role.OPERATOR)
    yield opened
    await opened.page.context.close()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def empty_site(browser: Browser, postgres18_server: PostgresServer) -> AsyncIterator[Site]:
    """The pages over a ledger that was just made."""
    with database_of(postgres18_server) as dsns:
        async with site_over(dsns, browser) as opened:
            yield opened


async def test_every_page_is_looked_at() -> None:
    pages = {path for method, path in page_addresses() if method == "GET"} - NO_PAGES
    assert set(EXAMPLES) == pages


@pytest.mark.parametrize("example", ALL, ids=lambda example: example[0])
async def test_nothing_is_wrong_on_a_page(window: Watched, example: Example) -> None:
    await window.open(example[1])
    await _looked_at(window)
    await _shows_no_markup(window)


@pytest.mark.parametrize("example", FOR_NOBODY, ids=lambda example: example[0])
async def test_nothing_is_wrong_where_one_logs_in(site: Site, example: Example) -> None:
    window = await site.window(None)
    await window.open(example[1])
    await _looked_at(window)
    await window.page.context.close()


async def test_an_empty_ledger_says_on_every_page_what_to_do_next(empty_site: Site) -> None:
    window = await empty_site.window(Role.OPERATOR)
    for name, path in EMPTY:
        await window.open(path)
        await _looked_at(window)
        assert await window.page.locator(".empty, form").count(), name
    await window.page.context.close()


async def test_who_may_not_see_a_page_is_told_whose_role_it_needs(site: Site) -> None:
    window = await site.window(Role.READER)
    await window.open("/")
    assert await window.page.get_by_role("link", name="Commit", exact=True).count() == 0
    for path in ("/bindings/1/events", EXAMPLES["/bindings/{binding_id}/objects/{object_key}"][0][1], "/commit"):
        await window.open(path, status=403)
        said = await window.page.inner_text("main")
        assert "reader" in said
        assert "operator" in said
        await _looked_at(window)
    for path in ("/", "/runs", "/objects", "/inbox", "/refused", "/verification", "/workers"):
        await window.open(path)
        assert await window.page.locator("a[href*='/events/']").count() == 0, path
    await window.page.context.close()


@pytest.mark.parametrize(
    ("path", "status"),
    [("/nothing", 404), ("/bindings/9", 404), ("/bindings/1/events/99999", 404), ("/runs?sate=open", 422),
     ("/objects?kind=BuiltinTag&identity=red", 422), (f"/bindings/1/objects/{'0' * 64}", 404)],
)  # fmt: skip
async def test_what_is_not_there_has_a_page_too(window: Watched, path: str, status: int) -> None:
    await window.open(path, status=status)
    await _looked_at(window)


async def _looked_at(window: Watched) -> None:
    """Light, dark and narrow; what was said, asked for and kept from happening."""
    page = window.page
    await page.emulate_media(color_scheme="light")
    await window.require_accessible()
    await page.emulate_media(color_scheme="dark")
    await window.require_accessible(colours_alone=True)
    size = page.viewport_size
    assert size is not None
    await page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    await window.require_no_sideways_scroll()
    await page.set_viewport_size(size)
    await window.require_clean()


async def _shows_no_markup(window: Watched) -> None:
    """Text of others made no element, ran nothing, hides nothing and turns nothing around."""
    page = window.page
    assert await page.evaluate("window.ran") is None
    foreign = await page.evaluate(
        '[...document.querySelectorAll(\'script:not([src]), img:not([src^="/static/"]), [onerror], [onclick], iframe, '
        'object, embed, svg script, link:not([href^="/static/"])\')].map((found) => found.outerHTML)'
    )
    assert foreign == []
    text = await page.evaluate("document.documentElement.outerHTML")
    categories = ("Cf", "Cc", "Co", "Cs", "Zl", "Zp")
    hidden = {char for char in text if unicodedata.category(char) in categories and char not in "\n\t"}
    assert hidden == set()
