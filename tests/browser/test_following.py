"""What a page that follows a run leaves alone when a part of it comes anew: the place where somebody is."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from ledger.api.tokens import Role
from tests.browser.conftest import ON_ONE_LOOP, Site
from tests.support.browser import PATIENCE

pytestmark = [*ON_ONE_LOOP, pytest.mark.timeout(120)]
expect.set_options(timeout=PATIENCE)

_COMES_ANEW = """() => new Promise((done) => {
  document.addEventListener("drawn", () => done(), { once: true });
  document.querySelector("#progress h1").textContent = "as it was before";
  document.body.dispatchEvent(new CustomEvent("ledger-moved"));
})"""


@pytest.mark.parametrize("name", ["Stop…", "not attempted"])
async def test_who_is_at_a_link_by_keys_is_still_there_when_the_page_has_followed(site: Site, name: str) -> None:
    window = await site.window(Role.OPERATOR)
    await window.open("/bindings/1/runs/run-waits")
    await window.tab_to(name)
    for _ in range(2):
        await window.page.evaluate(_COMES_ANEW)
        await expect(window.page.locator("#progress h1")).to_have_text("Run run-waits")
        await expect(window.page.get_by_role("link", name=name, exact=True)).to_be_focused()
    await window.require_clean()
    await window.page.context.close()


async def test_what_somebody_opened_to_read_stays_open_when_the_page_has_followed(site: Site) -> None:
    window = await site.window(Role.OPERATOR)
    await window.open("/bindings/1/runs/run-waits")
    plan = window.page.locator("#progress details").first
    await plan.locator("summary").click()
    await expect(plan.locator(".hash")).to_be_visible()
    await window.page.evaluate(_COMES_ANEW)
    await expect(window.page.locator("#progress h1")).to_have_text("Run run-waits")
    await expect(plan.locator(".hash")).to_be_visible()
    await window.require_clean()
    await window.page.context.close()


async def test_a_chart_says_something_before_anybody_points_at_it_and_shows_no_time_to_come(site: Site) -> None:
    window = await site.window(Role.READER)
    await window.open("/bindings/1")
    values = window.page.locator(".u-legend .u-value")
    await expect(values).to_have_count(4)
    said = await values.all_inner_texts()
    assert said[0].startswith("20")
    assert "–" not in "".join(said)
    counts = [int(value.replace(",", "")) for value in said[1:]]
    table = await window.page.evaluate(
        "[...document.querySelectorAll('#activity-table tbody tr')].map((row) =>"
        " [...row.querySelectorAll('td[data-n]')].map((cell) => Number(cell.dataset.n)))"
    )
    applied, _, failed, unknown = (sum(column) for column in zip(*table, strict=True))
    assert counts == [unknown, failed, applied]
    await window.require_clean()
    await window.page.context.close()
