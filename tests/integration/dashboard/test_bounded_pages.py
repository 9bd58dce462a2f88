"""What a page costs does not grow with the ledger: many destinations come in pages, a deep page reads what it shows."""

from __future__ import annotations

import html
import re
from unittest.mock import AsyncMock

import pytest

from ledger.api.object_reading import ObjectReader
from ledger.api.tokens import Role
from ledger.dashboard import object_pages, overview_pages, worker_pages
from ledger.store.session import Session
from tests.support.api import Served
from tests.support.shown_ledger import OBJECT_PAGES
from tests.support.visitors import Visitor, visitor

pytestmark = pytest.mark.integration

_NEXT = re.compile(r'rel="next" href="([^"]+)"')
_DESTINATIONS = re.compile(r'<th scope="row">(?:<[^>]*>)*?<a href="/bindings/(\d+)"')


async def _all(somebody: Visitor, path: str) -> list[str]:
    """The pages of a list, from the first one on."""
    pages: list[str] = []
    following: str | None = path
    while following:
        answer = await somebody.get(following)
        assert answer.status_code == 200, answer.text
        pages.append(answer.text)
        more = _NEXT.search(answer.text)
        following = html.unescape(more[1]) if more else None
    return pages


@pytest.mark.parametrize("path", ["/", "/workers"])
async def test_many_destinations_come_in_pages_and_are_counted_whole(
    site: Served, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async with visitor(site, Role.READER) as reader:
        [whole] = await _all(reader, path)
        for module in (overview_pages, worker_pages):
            monkeypatch.setattr(module, "DESTINATIONS_PER_PAGE", 1)
        pages = await _all(reader, path)
    assert _DESTINATIONS.findall(whole) == ["1", "2"]
    assert [_DESTINATIONS.findall(page) for page in pages] == [["1"], ["2"]]
    for page in pages:
        assert ("2 in all" if path == "/" else "1 without one") in page
        assert ("Back to the beginning" in page) == (page is pages[1])
        assert page.count("/bindings/2/runs/") >= whole.count("/bindings/2/runs/") - 1, "runs keep their destinations"


async def test_the_state_of_all_destinations_is_read_at_once(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    rows = Session.rows

    async def counted(self: Session, name: str, *arguments: object) -> object:
        asked.append(name)
        return await rows(self, name, *arguments)

    monkeypatch.setattr(Session, "rows", counted)
    async with visitor(site, Role.READER) as reader:
        for path in ("/workers", "/", "/api/v1/bindings"):
            asked.clear()
            assert (await reader.get(path)).status_code == 200
            assert [name for name in asked if name.startswith("documents_")] == ["documents_of_bindings"]


async def test_a_deep_page_of_a_history_has_no_blame(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_pages, "PER_PAGE", 2)
    async with visitor(site, Role.AUDITOR) as auditor:
        first = (await auditor.get(f"/bindings/1/objects/{OBJECT_PAGES['red']}")).text
        more = _NEXT.search(first)
        assert more is not None
        assert 'id="blame-heading"' in first
        monkeypatch.setattr(ObjectReader, "blame", AsyncMock(side_effect=AssertionError("nobody asked for it")))
        deep = await auditor.get(html.unescape(more[1]).partition("#")[0])
    assert deep.status_code == 200
    assert 'id="blame-heading"' not in deep.text
    heading = re.search(r"<h1>.*?</h1>", first, re.S)
    assert heading is not None
    assert heading[0] in deep.text
    assert f'href="/bindings/1/objects/{OBJECT_PAGES["red"]}">Back to the beginning' in deep.text
