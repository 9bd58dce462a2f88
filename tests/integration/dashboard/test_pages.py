"""What holds on every page: nothing that was recorded is markup, nothing is inline, every trouble has a page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from html.parser import HTMLParser
from unittest.mock import AsyncMock

import pytest
from fastapi.routing import APIRoute

from ledger.api.errors import TooManyRequestsError
from ledger.api.gate import HEADERS
from ledger.api.tokens import Role
from ledger.dashboard.application import ROUTERS
from ledger.store.errors import LedgerUnavailableError
from tests.support.api import Served, served
from tests.support.page_examples import ALL, EXAMPLES
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.shown_ledger import ENDLESS, REVERSED
from tests.support.visitors import ORIGIN, visitor

pytestmark = pytest.mark.integration

_VOID = frozenset({"meta", "link", "img", "input", "br", "hr", "rect", "path", "circle", "line"})
_URLS = frozenset({"href", "src", "action", "data-hx-get", "data-hx-post", "data-stream"})


class _Page(HTMLParser):
    """Reads a page as a browser does, and notes what must not be there."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.stack: list[str] = []
        self.feed(text)
        self.close()
        if self.stack:
            self.wrong.append(f"never closed: {self.stack}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if len(given) != len(attrs):
            self.wrong.append(f"an attribute twice in <{tag}>")
        self.wrong += [
            f"<{tag} {name}>" for name in given if name.startswith(("on", "hx-on", "data-hx-on")) or name == "style"
        ]
        for name in _URLS & set(given):
            if not (given[name] or "").startswith(("/", "#")) or (given[name] or "").startswith("//"):
                self.wrong.append(f"{name}={given[name]}")
        if tag == "style" or (tag == "script" and "src" not in given):
            self.wrong.append(f"inline <{tag}>")
        if "id" in given:
            self.ids.append(given["id"] or "")
        if tag not in _VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.wrong.append(f"</{tag}> ends something else")


@pytest.fixture
async def empty_dsns(postgres18_server: PostgresServer) -> Mapping[str, str]:
    name = postgres18_server.create_database(postgres18_server.template("newest", migrate_fully))
    dsn = postgres18_server.dsn
    return {"admin": dsn(name)} | {key: dsn(name, user=role) for key, role in ROLES.items()}


async def test_no_page_has_anything_of_the_data_as_markup(site: Served) -> None:
    """Names with tags in them, overrides of direction, ten thousand characters: text, visible, and with an end."""
    async with visitor(site, Role.OPERATOR) as somebody:
        for name, path in ALL:
            answer = await somebody.get(path)
            assert answer.status_code in (200, 403), (name, answer.status_code)
            page = _Page(answer.text)
            assert page.wrong == [], name
            assert len(page.ids) == len(set(page.ids)), (name, "an id twice")
            assert not re.search("[\u200b\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f]", answer.text), name
            assert "<img src=x" not in answer.text, name
            assert "<script>window" not in answer.text, name
            outside = re.sub(r'(?s)<pre[^>]*>.*?</pre>|title="[^"]*"', "", answer.text)
            assert ENDLESS not in outside, (name, "what is endless is cut, and whole on demand")
            assert "\\u0007 49" not in answer.text, (name, "what looks like a template is text")


async def test_a_field_that_was_left_empty_is_no_filter(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        for route in (route for router in ROUTERS for route in router.routes):
            path = str(getattr(route, "path", ""))
            if path in EXAMPLES and isinstance(route, APIRoute):
                models = [parameter.field_info.annotation for parameter in route.dependant.query_params]
                names = [name for model in models for name in getattr(model, "model_fields", ())]
                assert bool(names) == bool(models)
                plain = (await somebody.get(EXAMPLES[path][0][1])).status_code
                blank = await somebody.get(EXAMPLES[path][0][1].partition("?")[0], params=dict.fromkeys(names, ""))
                assert blank.status_code == plain, (path, names)


async def test_what_is_hidden_in_a_name_is_shown(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        text = (await somebody.get("/bindings/1/runs/run-hostile/operations")).text
        assert "\\u202egpj.exe" in text
        assert REVERSED not in text


@pytest.mark.rules("G12")
async def test_every_answer_has_the_headers_of_safety_and_is_kept_by_nobody(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        for path in ("/", "/runs", "/nothing", "/login", "/bindings/9"):
            answer = await somebody.get(path)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS, path
            assert answer.headers["cache-control"] == "no-store"
            assert "unsafe" not in answer.headers["content-security-policy"]
            assert "access-control-allow-origin" not in answer.headers


async def test_what_a_page_loads_is_there_and_kept_for_good(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        text = (await somebody.get("/")).text
        files = set(re.findall(r'"(/static/[^"]+)"', text))
        assert {path.rsplit("/", 1)[1] for path in files} >= {"dashboard.css", "dashboard.js", "chart.js", "mark.svg"}
        somebody.client.cookies.clear()
        for path in files:
            answer = await somebody.get(path)
            assert (answer.status_code, answer.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
            assert answer.headers["x-content-type-options"] == "nosniff"
        for path in ("/static/0/dashboard.css", "/static/x/..%2Fpages.py", "/static/x/VENDORED.md", "/static/"):
            assert (await somebody.get(path)).status_code == 404, path


async def test_a_part_for_htmx_is_at_the_address_of_its_page(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        for path in ("/bindings/1/runs/run-hostile", "/bindings/1/runs/run-hostile/operations?outcome=failed"):
            page, part = await somebody.get(path), await somebody.part(path)
            assert "<html" in page.text
            assert "<html" not in part.text
            assert part.headers["vary"] == page.headers["vary"] == "HX-Request"
            assert _Page(part.text).wrong == []
        gone = await somebody.part("/bindings/1/runs/never")
        assert (gone.status_code, "<html" in gone.text, "NotThereError" in gone.text) == (404, False, True)


@pytest.mark.rules("G11")
async def test_g11_each_trouble_has_its_page(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    troubles = {
        "/nothing": (404, "NotThereError"),
        "/bindings/99": (404, "NotThereError"),
        "/bindings/99/runs/x": (404, "NotThereError"),
        "/bindings/1/runs/run-create/operations/99": (404, "NotThereError"),
        "/bindings/0": (422, "InvalidRequestError"),
        "/bindings/1/runs/..%2F": (404, "NotThereError"),
        "/runs?state=wonderful": (422, "InvalidRequestError"),
        "/runs?colour=red": (422, "InvalidRequestError"),
        "/runs?since=yesterday": (422, "InvalidRequestError"),
        "/runs?since=0001-01-01T00:00:00%2B14:00": (422, "InvalidRequestError"),
        "/runs?until=9999-12-31T23:59:59-14:00": (422, "InvalidRequestError"),
        "/runs?cursor=AAAA": (400, "InvalidCursorError"),
        "/commit": (403, "OrdersNotTakenError"),
    }
    async with visitor(site, Role.OPERATOR) as somebody:
        for path, (status, code) in troubles.items():
            answer = await somebody.get(path)
            assert answer.status_code == status, path
            assert all(word in answer.text for word in (code, "Checked", "Expected", "Found", "Next")), path
            assert _Page(answer.text).wrong == []
        assert (await somebody.client.delete("/runs")).status_code == 405
        token = site.tokens[Role.OPERATOR]
        assert token not in (await somebody.get(f"/runs?source={token}")).text

        async def away(*_: object, **__: object) -> None:
            raise LedgerUnavailableError(
                checked="the ledger's database", expected="an answer", found="none", next_action="start it"
            )

        monkeypatch.setattr(site.service.reader.ledger, "projections_are_behind", away)
        answer = await somebody.get("/")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "cannot be reached" in answer.text
        assert "No recorded data is lost" in answer.text

        async def broken(*_: object, **__: object) -> None:
            raise ValueError("hunter2")

        monkeypatch.setattr(site.service.reader.ledger, "projections_are_behind", broken)
        answer = await somebody.get("/")
        assert (answer.status_code, "DefectError" in answer.text, "hunter2" in answer.text) == (500, True, False)


@pytest.mark.parametrize(
    ("path", "again"),
    [
        ("//evil.example/x", "/"),
        ("/%5Cevil.example", "/%5Cevil.example"),
        ("/bindings/1/events?after=3&kind=a%26b", "/bindings/1/events?after=3&amp;kind=a%26b"),
        ("/n%C3%B6/%3F%23/%22%3E", "/n%C3%B6/%3F%23/%22%3E"),
    ],
)
async def test_to_try_again_leads_to_the_same_page_and_never_to_another_site(
    site: Served, monkeypatch: pytest.MonkeyPatch, path: str, again: str
) -> None:
    troubles = (
        (503, LedgerUnavailableError(checked="the database", expected="an answer", found="none", next_action="wait")),
        (429, TooManyRequestsError(checked="the rate", expected="fewer", found="more", next_action="wait", seconds=1)),
    )
    async with visitor(site, Role.READER) as somebody:
        for status, trouble in troubles:
            monkeypatch.setattr(site.app.callers.tokens, "token", AsyncMock(side_effect=trouble))
            answer = await somebody.get(f"{ORIGIN}{path}")
            assert answer.status_code == status
            assert f'<a href="{again}">Try again</a>' in answer.text


@pytest.mark.rules("G11")
async def test_g11_a_form_that_came_through_a_proxy_with_another_host_says_what_to_change(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        headers = {"Origin": "https://ledger.example", "Host": "127.0.0.1:8400", "Sec-Fetch-Site": "same-origin"}
        answer = await somebody.client.post("/logout", data=await somebody.form("/runs"), headers=headers)
        assert (answer.status_code, "ForeignOriginError" in answer.text) == (403, True)
        assert "a proxy in front of this server has to pass the header Host on unchanged" in answer.text
        headers["Host"] = "ledger.example"
        answer = await somebody.client.post("/logout", data=await somebody.form("/runs"), headers=headers)
        assert answer.status_code == 303


async def test_a_page_says_which_clock_it_and_what_stands_on_it_have_their_times_from(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        before = datetime.now(UTC)
        page = (await somebody.get("/runs")).text
    footer = page[page.index("<footer") : page.index("</footer>")]
    made = re.search(r'<time datetime="([^"]+)"', footer)
    assert made is not None
    assert before <= datetime.fromisoformat(made[1]) <= datetime.now(UTC)
    assert re.search("recorded is by the ledger database’s clock.* made, .*, is by this server’s", footer, re.S)


async def test_an_empty_ledger_says_what_to_do_next(empty_dsns: Mapping[str, str]) -> None:
    async with served(empty_dsns) as site, visitor(site, Role.OPERATOR) as somebody:
        overview, runs = (await somebody.get("/")).text, (await somebody.get("/runs")).text
        assert "Nothing has been committed yet" in overview
        assert "apply-ledger plan --config-file" in overview
        assert "No run yet" in runs
        assert "No matching run" in (await somebody.get("/runs?state=failed")).text
