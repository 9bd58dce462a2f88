"""A plan from commit to success in a browser, over real processes: progress, a failure, a resumption; by keys alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from consumers.infrahub.sandbox.faults import FaultAnswer, FaultRule
from tests.browser.conftest import ON_ONE_LOOP
from tests.support.browser import PATIENCE, Watched, opened
from tests.support.live_site import LiveSite, live_site

pytestmark = [*ON_ONE_LOOP, pytest.mark.timeout(300)]
expect.set_options(timeout=PATIENCE)

BRANCH = "pages"
SIX = [{"name": f"tag {number}", "description": f"number {number}"} for number in range(6)]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveSite]:
    async with live_site(tmp_path_factory.mktemp("live"), BRANCH) as running:
        yield running


async def _log_in(window: Watched, token: str, path: str) -> None:
    """By keys: the field has the focus already."""
    await window.page.goto(window.origin + path)
    await expect(window.page).to_have_title("Log in · apply-ledger")
    await window.page.keyboard.type(token)
    await window.page.keyboard.press("Enter")
    await expect(window.page.get_by_role("button", name="Log out")).to_be_visible()


@pytest.mark.rules("G5", "P122", "P125", "P126")
async def test_g05_a_plan_is_committed_fails_and_is_resumed_from_the_page_by_keys(
    live: LiveSite, browser: Browser
) -> None:
    live.cli.source(*SIX)
    planned = await asyncio.to_thread(live.cli.plan)
    faults = live.cli.sandbox.faults
    held = faults.add(FaultRule(kind="BuiltinTag", branch=BRANCH, nth=2, hold="before-write"))
    faults.add(FaultRule(kind="BuiltinTag", branch=BRANCH, nth=3, answer=FaultAnswer.TEXT_500, write=False))
    token = await live.token("ada", "operator")
    async with live.writer(), opened(browser, live.origin) as window:
        page, keys = window.page, window.page.keyboard
        await _log_in(window, token, "/commit")
        await window.tab_to("Run")
        await keys.type(planned["run"])
        await window.tab_to("Checksum of the plan")
        await keys.type(planned["plan_checksum"])
        await window.tab_to("Reason")
        await keys.type("from the page <b>by keys</b>")
        await window.tab_to("Commit this plan")
        await keys.press("Enter")
        await expect(page.locator("h1")).to_contain_text(planned["run"].split("/")[-1])
        # in the middle of it: the second operation is held at the destination
        assert await asyncio.to_thread(held.wait_reached, 60.0)
        await expect(page.locator(".chip").first).to_have_text("applying")
        await expect(_count(window, "applied")).to_have_text("1")
        await expect(page.get_by_text("The plan is committed.")).to_have_count(0)
        await window.require_accessible()
        held.release()
        # nobody loads the page again: it follows
        failure = page.locator("#progress > .refusal").first
        await expect(failure).to_contain_text("DestinationFaultError")
        await expect(failure).to_contain_text("Stopped at operation 3")
        assert await page.evaluate(
            "document.querySelector('#progress .refusal').getBoundingClientRect().top"
            " < document.querySelector('#progress .counts').getBoundingClientRect().top"
        )
        await expect(_count(window, "applied")).to_have_text("3")
        await expect(_count(window, "unknown")).to_have_text("1")
        await expect(_count(window, "not attempted")).to_have_text("2")
        await expect(_fact(window, "applied_operations")).to_have_text("3")
        await expect(_fact(window, "may_have_partially_written")).to_have_text("yes")
        await expect(page.locator("#progress .notice.good")).to_have_count(0)
        await window.require_accessible()
        faults.clear()
        await window.tab_to("Resume…")
        await keys.press("Enter")
        await expect(page).to_have_title(re.compile("^Resume "))
        await window.tab_to("Reason")
        await keys.type("looked: it was not written")
        await window.tab_to("Resume this run")
        await keys.press("Enter")
        await expect(_count(window, "applied")).to_have_text("6")
        await expect(page.locator(".chip").first).to_have_text("applied")
        await expect(page.locator("#progress > .refusal")).to_have_count(0)
        # all of the page is of the end, without being loaded again: what was ordered, what came of it, until when
        await expect(_fact(window, "applied_operations")).to_have_text("6")
        await expect(_fact(window, "may_have_partially_written")).to_have_text("no")
        orders = page.get_by_role("region", name="What was ordered for this run")
        await expect(orders.locator("tbody .chip")).to_have_text(["closed", "closed"])
        await expect(page.locator("dt", has_text=re.compile("^Ended$")).locator("+ dd")).to_contain_text("UTC")
        await expect(page.locator("#progress .notice.good")).to_have_count(0)
        await expect(page.locator("#operations td .chip")).to_have_text(["applied"] * 6)
        await expect(page.get_by_text("from the page <b>by keys</b>").first).to_be_visible()
        await window.require_accessible()
        await window.require_clean()
    assert live.cli.sandbox.store.count("BuiltinTag", branch=BRANCH) == 6


async def test_a_database_that_is_away_is_told_and_found_again(live: LiveSite, browser: Browser) -> None:
    token = await live.token("bob", "auditor")
    async with opened(browser, live.origin) as window:
        await _log_in(window, token, "/runs")
        await live.stop_database()
        await window.open("/runs", status=503)
        await expect(window.page.locator("h1")).to_have_text("The ledger cannot be reached")
        for scheme in ("light", "dark"):
            await window.page.emulate_media(color_scheme=scheme)
            await window.require_accessible()
        await live.start_database()
        await window.page.get_by_role("link", name="Try again").click()
        await expect(window.page.locator("h1")).to_have_text("Runs")
        await window.require_clean()


def _count(window: Watched, name: str) -> Locator:
    return window.page.locator(".counts li", has=window.page.locator(".key", has_text=name)).locator(".count").first


def _fact(window: Watched, key: str) -> Locator:
    return window.page.locator("dt", has=window.page.locator("code", has_text=key)).locator("+ dd").first
