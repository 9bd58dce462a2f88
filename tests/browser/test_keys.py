"""Lists by single keys, the list of these keys, and the switch that ends them."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from ledger.api.tokens import Role
from tests.browser.conftest import ON_ONE_LOOP, Site
from tests.support.browser import PATIENCE

pytestmark = [*ON_ONE_LOOP, pytest.mark.timeout(120)]
expect.set_options(timeout=PATIENCE)


async def test_rows_filter_and_help_are_reached_by_keys_until_they_are_switched_off(site: Site) -> None:
    window = await site.window(Role.READER)
    page = window.page
    await window.open("/runs")
    rows = page.locator("main tbody tr")
    for key, row in (("j", 0), ("j", 1), ("k", 0)):
        await page.keyboard.press(key)
        await expect(rows.nth(row).locator("a[href]").first).to_be_focused()
    await page.keyboard.press("/")
    await expect(page.locator("main form[role=search] select").first).to_be_focused()
    await page.locator("main form[role=search] input[name=source]").focus()
    await page.keyboard.type("jk")
    await expect(page.locator("main form[role=search] input[name=source]")).to_have_value("jk")

    await page.locator("main h1").click()
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    await expect(keys).to_be_visible()
    await window.require_accessible()
    await keys.get_by_role("checkbox").uncheck()
    await page.keyboard.press("Escape")
    await expect(keys).to_be_hidden()

    await window.open("/runs")
    await page.keyboard.press("j")
    await expect(rows.first.locator("a[href]").first).not_to_be_focused()
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    await expect(keys.get_by_role("checkbox")).not_to_be_checked()
    await window.require_clean()
    await page.context.close()
