"""The operations of a run, page by page and filtered: the address, the focus and the old table are not lost."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Route, expect

from ledger.api.tokens import Role
from ledger.dashboard import run_pages
from tests.browser.conftest import ON_ONE_LOOP, Site
from tests.support.browser import PATIENCE

pytestmark = [*ON_ONE_LOOP, pytest.mark.timeout(120)]
expect.set_options(timeout=PATIENCE)

RUN = "/bindings/1/runs/run-hostile"


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_pages, "OPERATIONS_PER_PAGE", 2)


async def _begins_with(page: Page, ordinal: int) -> None:
    first = page.locator("#operations tbody tr").first
    await expect(first.get_by_role("link", name=f"Operation {ordinal}", exact=True)).to_be_visible()


async def test_a_place_in_the_operations_is_in_the_address_and_keeps_the_focus(site: Site) -> None:
    window = await site.window(Role.READER)
    await window.open(RUN)
    await _begins_with(window.page, 0)
    await window.tab_to("Next")
    await window.page.keyboard.press("Enter")
    await _begins_with(window.page, 2)
    await expect(window.page.locator("#said")).to_have_text("Operations 2 to 3")
    await expect(window.page.locator("#operations-next")).to_be_focused()
    await window.page.keyboard.press("Enter")
    await _begins_with(window.page, 4)
    await expect(window.page.locator("#operations [role=region]")).to_be_focused()  # there is no next page any more
    await window.page.go_back()
    await _begins_with(window.page, 2)
    await window.page.wait_for_load_state()

    await window.page.reload()
    await _begins_with(window.page, 2)
    await window.page.go_back()
    await expect(window.page).to_have_url(site.origin + RUN)
    await _begins_with(window.page, 0)
    await window.require_clean()
    await window.page.context.close()


async def test_a_filter_is_in_the_address(site: Site) -> None:
    window = await site.window(Role.READER)
    await window.open(RUN)
    await window.page.locator("#operations-outcome").focus()
    await window.page.keyboard.type("unknown")
    await window.tab_to("Filter")
    await window.page.keyboard.press("Enter")
    await expect(window.page.locator("#operations tbody tr")).to_have_count(1)
    assert "outcome=unknown" in window.page.url
    await window.page.reload()
    await expect(window.page.locator("#operations tbody tr")).to_have_count(1)
    await window.require_clean()
    await window.page.context.close()


async def test_a_page_that_cannot_be_fetched_leaves_the_table_and_says_that_it_is_old(site: Site) -> None:
    window = await site.window(Role.READER)
    await window.open(RUN)

    async def unavailable(route: Route) -> None:
        await route.fulfill(status=503, body="<p>not now</p>", content_type="text/html")

    await window.page.route("**/operations?*", unavailable)
    await window.page.locator("#operations-next").click()
    await expect(window.page.locator("#operations [data-stale]")).to_be_visible()
    await _begins_with(window.page, 0)
    await window.page.unroute("**/operations?*")
    await window.page.locator("#operations-next").click()
    await _begins_with(window.page, 2)
    await expect(window.page.locator("#operations [data-stale]")).to_be_hidden()
    await window.page.context.close()


async def test_a_refused_run_has_the_way_to_resume_it(site: Site) -> None:
    window = await site.window(Role.OPERATOR)
    await window.open("/bindings/1/runs/run-refused")
    await expect(window.page.get_by_role("link", name="Resume…", exact=True)).to_be_visible()
    await window.require_clean()
    await window.page.context.close()
