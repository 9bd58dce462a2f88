"""Pages of objects, orders, refusals, verification, workers and events: what they say is what the ledger holds."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.api.tokens import Role
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.dashboard import event_pages, inbox_pages, object_pages
from ledger.events import NewEvent, PlanSealed, new_event
from ledger.plan.canonical import object_key
from ledger.printable import visible
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow
from tests.support.api import BASE, Served, served
from tests.support.postgres import PostgresServer
from tests.support.shown_ledger import HOSTILE, OBJECT_PAGES
from tests.support.store import connection_to
from tests.support.told_story import TAG, told_database
from tests.support.visitors import Visitor, visitor

pytestmark = pytest.mark.integration

_TAGS = re.compile(r"<[^>]*>")


def _words(page: str) -> str:
    """What a page says, with single blanks."""
    main = page[page.index("<main") :]
    return " ".join(html.unescape(_TAGS.sub(" ", main)).split())


async def _page(somebody: Visitor, path: str, status: int = 200) -> str:
    answer = await somebody.get(path)
    assert answer.status_code == status, answer.text
    return answer.text


@pytest.mark.rules("G3", "G6", "H16")
@pytest.mark.parametrize("name", ["red", "blue", "green"])
async def test_g06_an_object_page_tells_who_is_behind_each_value(site: Served, name: str) -> None:
    path = f"/bindings/1/objects/{OBJECT_PAGES[name]}"
    async with site.client(Role.AUDITOR) as api:
        blame = (await api.get(f"{BASE}{path}/blame")).json()
        history = (await api.get(f"{BASE}{path}/history")).json()
    async with visitor(site, Role.AUDITOR) as auditor:
        page = await _page(auditor, path)
    words = _words(page)
    assert blame["attributes"]
    for entry in [*blame["attributes"], *history["items"]]:
        assert f'href="/bindings/1/events/{entry["position"]}"' in page
        assert f'href="/bindings/1/runs/{entry["run_id"]}"' in page
        assert f'href="/bindings/1/runs/{entry["run_id"]}/operations/{entry["ordinal"]}"' in page
        assert entry["recorded_at"][:19].replace("T", " ") + " UTC" in words
        assert f"{entry['source']} · {visible(entry['actor'][:20])}" in words
        assert visible(entry["reason"][:60]) in words
    for attribute in blame["attributes"]:
        assert f'title="{attribute["plan_checksum"]}"' in page
        assert f'title="{attribute["operation_id"]}"' in page or attribute["operation_id"] in words
        for earlier in attribute["earlier"]:
            assert f'href="/bindings/1/events/{earlier["position"]}"' in page
        assert not attribute["earlier"] or f"{attribute['earlier_total']} earlier" in words
    for told in history["items"]:
        assert not told["message"] or visible(told["message"][:60]) in words
    assert ("its delete was recorded and not executed" in words) == bool(blame["deletes_recorded"])


async def test_the_history_of_an_object_goes_on_page_by_page(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_pages, "PER_PAGE", 2)
    path = f"/bindings/1/objects/{OBJECT_PAGES['red']}"
    async with site.client(Role.AUDITOR) as api:
        wanted = [item["position"] for item in (await api.get(f"{BASE}{path}/history")).json()["items"]]
    found: list[int] = []
    async with visitor(site, Role.AUDITOR) as auditor:
        following: str | None = path
        while following:
            page = await _page(auditor, following)
            history = page[page.index('id="history"') :]
            found += [int(text) for text in re.findall(r'<th scope="row" class="n"><a [^>]*>(\d+)</a>', history)]
            more = re.search(r'rel="next" href="([^"]+)"', history)
            following = html.unescape(more[1]).partition("#")[0] if more else None
    assert found == wanted
    assert len(found) > 2


async def test_an_object_is_found_as_the_command_finds_it(site: Served) -> None:
    link = f'href="/bindings/1/objects/{OBJECT_PAGES["red"]}"'
    async with visitor(site, Role.AUDITOR) as auditor:
        for identity in ("name=red", "  name=red \r\n\r\n", '{"name": "red"}'):
            page = (await auditor.get("/objects", params={"kind": f" {TAG} ", "identity": identity})).text
            assert link in page, identity
            assert "Attempted last" not in page
        none = _words((await auditor.get("/objects", params={"kind": TAG, "identity": "name=pink"})).text)
        assert "Nothing was ever attempted on this object" in none
        elsewhere = await auditor.get("/objects", params={"kind": TAG, "identity": "name=red", "binding": "2"})
        assert link not in elsewhere.text
        for identity in ("red", "name=a\nname=b", "{", "[1]", '{"name": NaN}'):
            refused = await auditor.get("/objects", params={"kind": TAG, "identity": identity})
            assert refused.status_code == 422, identity
            assert "This names no object" in refused.text
            content = refused.text.split("</main>")[0]
            told = [html.unescape(_TAGS.sub("", part)) for part in re.findall("<dd[^>]*>(.*?)</dd>", content)]
            assert len(told) == 5, told
            assert all(told), told
        recent = await _page(auditor, "/objects")
        for name in ("red", "blue", "green", *HOSTILE):
            assert f'href="/bindings/1/objects/{OBJECT_PAGES[name]}"' in recent
    async with visitor(site, Role.READER) as reader:
        page = (await reader.get("/objects", params={"kind": TAG, "identity": "name=red"})).text
        assert ("Found" in _words(page), "red" in _words(page), link in page) == (True, True, False)


async def test_a_reference_leads_to_what_it_points_to(site: Served) -> None:
    found = object_pages.peer_of({"peer_kind": "LocationRegion", "identity": {"name": "north"}})
    assert found is not None
    assert found.key == object_key("LocationRegion", {"name": "north"}).hex()
    for other in (
        "text",
        None,
        {},
        {"peer_kind": 1, "identity": {}},
        {"peer_kind": "a", "identity": {"a": float("nan")}},
    ):
        assert object_pages.peer_of(other) is None


async def test_the_inbox_goes_on_page_by_page(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_pages, "PER_PAGE", 3)
    async with site.client(Role.READER) as api:
        wanted = [item["run_id"] for item in (await api.get(f"{BASE}/bindings/1/inbox")).json()["items"]]
    found: list[str] = []
    async with visitor(site, Role.READER) as reader:
        following: str | None = "/inbox?binding=1"
        while following:
            page = await _page(reader, following)
            found += re.findall(r'href="/bindings/1/runs/([^"/]+)"', page)
            more = re.search(r'rel="next" href="([^"]+)"', page)
            following = html.unescape(more[1]) if more else None
        assert found == wanted
        both = await _page(reader, "/inbox")
        assert "/bindings/1/runs/run-waits" in both
        assert "/bindings/2/runs/run-lost" in both
        assert (await reader.get("/inbox?binding=3")).status_code == 404


async def test_refusals_stand_with_every_reason_first(site: Served) -> None:
    async with visitor(site, Role.AUDITOR) as auditor, visitor(site, Role.READER) as reader:
        page = await _page(auditor, "/refused")
        assert _words(page).count("PeerNotFoundError :") == 5
        assert "55 more: run-refused tells where they stand" in _words(page)
        assert "plan-commits" in page
        seen = await _page(reader, "/refused")
        assert "plan-commits" not in seen
        assert "which auditors and operators may see" in _words(seen)
        assert "55 more" in _words(seen)


async def test_workers_and_leases(site: Served) -> None:
    async with visitor(site, Role.READER) as reader, visitor(site, Role.AUDITOR) as auditor:
        words = _words(await _page(reader, "/workers"))
        assert 'href="/bindings/1/events/1"' in await _page(auditor, "/workers")
    assert re.search(r"live host process opened the log at event 1, ", words)
    assert "worker-1" in words
    assert "1 without one" in words
    assert re.search(r"infrahub.example:8000 main live host", words)


@pytest.fixture
def told_dsns(postgres18_server: PostgresServer) -> Iterator[dict[str, str]]:
    yield from told_database(postgres18_server)


@asynccontextmanager
async def _auditor(dsns: dict[str, str], *, keys: Path | None = None) -> AsyncIterator[Visitor]:
    async with served(dsns, keys=keys) as site, visitor(site, Role.AUDITOR) as somebody:
        yield somebody


async def _forge(dsns: dict[str, str], change: str, *arguments: Any) -> None:
    async with connection_to(dsns["admin"]) as admin:
        await admin.execute("alter table ledger.event disable trigger all")
        await admin.execute(change, *arguments)


def _sealed_again(row: BindingRow) -> NewEvent:
    """Something that is recorded behind a checkpoint."""
    seal = PlanSealed(plan_checksum="a" * 64, operations_count=0, lines_root="b" * 64)
    return new_event("plan.sealed", seal, url=row.url, branch=row.branch, n="again")


def _downloads(page: str) -> tuple[str, str]:
    """Where the signed note and the export are."""
    found = sorted(re.findall(r'<a href="(/api/v1/[^"]+)" download>', page))
    assert len(found) == 2
    return found[0], found[1]


@pytest.mark.rules("G8")
async def test_g08_how_far_a_log_is_signed(told_dsns: dict[str, str], tmp_path: Path) -> None:
    key = SigningKey("auditors", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    (tmp_path / "auditors.pub").write_text(f"{key.public.text()}\n")
    async with _auditor(told_dsns, keys=tmp_path) as auditor:
        assert "no checkpoint" in _words(await _page(auditor, "/verification"))
        async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as ledger:
            [row] = await ledger.bindings()
            done = await publish_checkpoint(ledger, row, [key])
            signed = await _page(auditor, "/verification")
            assert "signed up to its head" in _words(signed)
            assert f"covers {done.position} events" in _words(signed)
            assert "auditors" in _words(signed)
            assert all(line in html.unescape(signed) for line in done.note.splitlines())
            note, export = _downloads(signed)
            assert (await auditor.get(note)).text == done.note
            assert (await auditor.get(export)).headers["content-type"] == "application/x-tar"
            await ledger.append_control(row.id, [_sealed_again(row)])
            assert "1 event behind the last checkpoint" in _words(await _page(auditor, "/verification"))
        await _forge(told_dsns, "update ledger.event set hash = sha256(hash) where position = $1", done.position)
        forged = await _page(auditor, "/verification")
        assert "the log is not what was signed" in _words(forged)
        assert "The log does not match its last checkpoint: at position" in _words(forged)
        assert 'role="alert"' in forged
        assert 'class="chip bad"' in forged
        await _forge(
            told_dsns,
            "update ledger.event set body = '{\"position\": \"x\"}' where kind = 'checkpoint.published'",
        )
        assert "its checkpoint cannot be read" in _words(await _page(auditor, "/verification"))


@pytest.mark.rules("G8")
async def test_g08_a_signature_that_this_server_cannot_check_is_not_called_one(told_dsns: dict[str, str]) -> None:
    key = SigningKey("strangers", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
    async with (
        _auditor(told_dsns) as auditor,
        await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as ledger,
    ):
        [row] = await ledger.bindings()
        done = await publish_checkpoint(ledger, row, [key])
        page = await _page(auditor, "/verification")
        assert "no key here to check its signature" in _words(page)
        assert "signed up to its head" not in page
        assert 'role="alert"' not in page, "nothing is wrong with the log as far as is known"
        # What does not match is told all the same: the note says what was signed, whoever signed it.
        await _forge(told_dsns, "update ledger.event set hash = sha256(hash) where position = $1", done.position)
        page = await _page(auditor, "/verification")
        assert "the log is not what was signed" in _words(page)
        assert "no key here" not in page


@pytest.mark.rules("G8")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("{note}", "signed by no key of this server"),
        ("no note", "its signed note cannot be read"),
        ("moved", "the log is not what was signed"),
    ],
)
async def test_g08_a_checkpoint_of_a_stranger_and_one_that_was_changed_are_told_apart(
    told_dsns: dict[str, str], tmp_path: Path, change: str, told: str
) -> None:
    ours, theirs = (Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in (1, 2))
    (tmp_path / "auditors.pub").write_text(f"{SigningKey('auditors', ours).public.text()}\n")
    async with (
        _auditor(told_dsns, keys=tmp_path) as auditor,
        await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as ledger,
    ):
        [row] = await ledger.bindings()
        await publish_checkpoint(ledger, row, [SigningKey("strangers", theirs)])
        mark = await ledger.last_checkpoint(row.id)
        assert mark is not None
        body = json.loads(mark.body)
        forged = {"{note}": body, "no note": body | {"note": "x"}, "moved": body | {"position": 3}}[change]
        await _forge(
            told_dsns,
            "update ledger.event set body = $1 where kind = 'checkpoint.published'",
            json.dumps(forged, sort_keys=True, separators=(",", ":")),
        )
        page = _words(await _page(auditor, "/verification"))
        assert told in page
        assert page.count("this server has no public key") == 0


@pytest.mark.rules("G8")
async def test_g08_an_event_that_was_changed_says_so(told_dsns: dict[str, str]) -> None:
    async with _auditor(told_dsns) as auditor:
        whole = await _page(auditor, "/bindings/1/events/5")
        assert "computed again: the same" in whole
        assert "equals the hash of the previous event" in whole
        assert 'role="alert"' not in whole
        assert "the beginning" in await _page(auditor, "/bindings/1/events/1")
        await _forge(told_dsns, "update ledger.event set body = '{ \"a\":1}' where position = 5")
        forged = await _page(auditor, "/bindings/1/events/5")
        assert "this event was changed after it was recorded" in forged
        assert "not the one spelling of their value" in forged
        await _forge(told_dsns, "update ledger.event set hash = sha256('x') where position = 5")
        assert "It does not chain to the event before it" in await _page(auditor, "/bindings/1/events/6")
        raw = await auditor.get("/api/v1/bindings/1/events/5/body")
        assert raw.content == b'{ "a":1}'


@pytest.mark.rules("G8")
async def test_g08_behind_an_event_that_was_taken_out_the_page_says_that_the_chain_is_broken(
    told_dsns: dict[str, str],
) -> None:
    async with _auditor(told_dsns) as auditor:
        await _forge(told_dsns, "delete from ledger.event where position = 5")
        page = await _page(auditor, "/bindings/1/events/6")
        assert "It does not chain to the event before it" in page
        assert "differs from the hash of the previous event" in page
        # Also where it says of itself that nothing stands before it.
        await _forge(told_dsns, "update ledger.event set prev_hash = $1 where position = 6", bytes(32))
        assert "It does not chain to the event before it" in await _page(auditor, "/bindings/1/events/6")


_VALUES = re.compile(r'(?s)aria-label="The body, one value per line">(.*?)</pre>')


async def test_no_recorded_value_makes_a_line_of_its_own(site: Served) -> None:
    hostile = 0
    async with visitor(site, Role.AUDITOR) as auditor:
        events = (await auditor.get(f"{BASE}/bindings/1/events?limit=500")).json()["items"]
        for event in events:
            body = (await auditor.get(f"{BASE}/bindings/1/events/{event['position']}/body")).text
            page = await _page(auditor, f"/bindings/1/events/{event['position']}")
            assert [page.count(char) for char in "\u0085\u2028\u2029"] == [0, 0, 0]
            pretty = _VALUES.search(page)
            assert (pretty is not None) == (len(body.encode()) <= event_pages.PRETTY)
            if pretty is not None:
                lines = [html.unescape(_TAGS.sub("", line)) for line in pretty[1].removesuffix("\n").split("\n")]
                wanted = json.loads(body)
                assert len(lines) == json.dumps(wanted, indent=2).count("\n") + 1
                assert json.loads("\n".join(lines)) == wanted
                hostile += any("\\u2028" in line for line in lines)
    assert hostile > 0


async def test_a_body_that_is_nested_too_deeply_is_shown_as_it_is_and_by_no_value_that_it_has_not(
    told_dsns: dict[str, str],
) -> None:
    async with _auditor(told_dsns) as auditor:
        for depth in (900, 5000):
            body = '{"a":' + "[" * depth + "]" * depth + "}"
            await _forge(told_dsns, "update ledger.event set body = $1 where position = 5", body)
            page = await _page(auditor, "/bindings/1/events/5")
            assert "this event was changed" in page
            assert f"<bdi>{body}</bdi>" in html.unescape(page)
            assert "<bdi>null</bdi>" not in page


async def test_events_of_one_kind_are_found_page_by_page(site: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_pages, "PER_PAGE", 2)
    async with site.client(Role.AUDITOR) as api:
        every = (await api.get(f"{BASE}/bindings/1/events?limit=500")).json()["items"]
    async with visitor(site, Role.AUDITOR) as auditor:
        for kind in event_pages.FINDABLE:
            found: list[int] = []
            following: str | None = f"/bindings/1/events?kind={kind}"
            while following:
                page = await _page(auditor, following)
                found += [int(text) for text in re.findall(r'<th scope="row" class="n"><a [^>]*>(\d+)</a>', page)]
                assert f'<option value="{kind}" selected>' in page
                assert ("No event of this kind" in page) == (not found)
                more = re.search(r'rel="next" href="([^"]+)"', page)
                following = html.unescape(more[1]) if more else None
            assert found == [event["position"] for event in reversed(every) if event["kind"] == kind], kind
        upto = await _page(auditor, "/bindings/1/events?kind=plan.committed&until=2")
        assert re.findall(r'<th scope="row" class="n"><a [^>]*>(\d+)</a>', upto) == ["2"]
        refused = await auditor.get("/bindings/1/events?kind=operation.applied")
        assert (refused.status_code, "listed by their run" in refused.text) == (422, True)


async def test_the_log_is_read_from_its_end_and_from_any_place(site: Served) -> None:
    async with site.client(Role.AUDITOR) as api:
        head = (await api.get(f"{BASE}/bindings/1")).json()["head_position"]
    async with visitor(site, Role.AUDITOR) as auditor:
        newest = await _page(auditor, "/bindings/1/events")
        shown = [int(text) for text in re.findall(r'<th scope="row" class="n"><a [^>]*>(\d+)</a>', newest)]
        assert shown == list(range(head, max(0, head - 50), -1))
        some = await _page(auditor, "/bindings/1/events?until=3")
        assert [int(text) for text in re.findall(r'<th scope="row" class="n"><a [^>]*>(\d+)</a>', some)] == [3, 2, 1]
        assert 'rel="prev"' in some
        assert 'rel="next"' not in some
        beyond = await _page(auditor, f"/bindings/1/events?until={head + 1000}")
        assert [int(t) for t in re.findall(r'<th scope="row" class="n"><a [^>]*>(\d+)</a>', beyond)] == shown
