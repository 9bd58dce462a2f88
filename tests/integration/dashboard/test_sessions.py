"""Who looks at a page logged in with a token; the token stays where it was, and a session ends."""

from __future__ import annotations

import time
from http.cookies import SimpleCookie

import httpx
import pytest

from ledger.api.limits import ApiLimits
from ledger.api.tokens import Role, new_token
from ledger.store.served import ServedLedger
from tests.support.api import BASE, Served, served
from tests.support.visitors import ORIGIN, visitor

pytestmark = pytest.mark.integration

NAME = "apply-ledger"
ELSEWHERE = [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "\\\\evil",
    "javascript:1",
    "evil",
    "",
    "/a\nb",
]


def _cookie(response: httpx.Response, name: str) -> tuple[str, dict[str, str]]:
    [header] = [value for value in response.headers.get_list("set-cookie") if value.startswith(name)]
    morsel = SimpleCookie(header)[name]
    return morsel.value, {key: str(value) for key, value in morsel.items() if value}


async def test_who_did_not_log_in_is_led_to_where_one_does_and_back(site: Served) -> None:
    async with visitor(site, None) as somebody:
        for path in ("/", "/runs?state=failed", "/nothing/of/ours"):
            away = await somebody.get(path)
            assert (away.status_code, away.text) == (303, ""), path
            form = await somebody.get(away.headers["location"])
            assert 'type="password"' in form.text
            assert f'name="next" value="{path}"' in form.text
        back = await somebody.log_in(site.tokens[Role.READER], "/runs?state=failed")
        assert (back.status_code, back.headers["location"]) == (303, "/runs?state=failed")
        assert (await somebody.get("/runs?state=failed")).status_code == 200
        part = await somebody.part("/runs")
        assert part.status_code == 200
        assert (await somebody.get("/login?next=/runs")).headers["location"] == "/runs"  # logged in already


async def test_what_htmx_asks_for_leads_the_whole_page_to_where_one_logs_in(site: Served) -> None:
    async with visitor(site, None) as somebody:
        part = await somebody.part("/runs")
        assert (part.status_code, part.headers["hx-redirect"], part.text) == (401, "/login", "")
        for here, next_ in {
            f"{ORIGIN}/bindings/1/runs/run-a?ordered=stop": "?next=%2Fbindings%2F1%2Fruns%2Frun-a%3Fordered%3Dstop",
            f"{ORIGIN}/runs#content": "?next=%2Fruns",
            "https://evil.example//evil.example/x": "",
            "http://[": "",
            f"{ORIGIN}/runs?source={site.tokens[Role.READER]}": "",
            f"{ORIGIN}/runs?source={'x' * 2048}": "",
        }.items():
            part = await somebody.get("/runs?cursor=x", headers={"HX-Request": "true", "HX-Current-URL": here})
            assert (part.status_code, part.headers["hx-redirect"]) == (401, f"/login{next_}"), here


async def test_who_comes_with_a_link_that_is_too_long_to_come_back_to_can_log_in(site: Served) -> None:
    longest = "/runs?source=" + "x" * (2048 - len("/runs?source="))
    async with visitor(site, None) as somebody:
        for path, there in ((longest, longest), (f"{longest}x", "/"), (f"{longest}{'x' * 9000}", "/")):
            away = await somebody.get(path)
            form = await somebody.get(away.headers["location"])
            assert (form.status_code, f'name="next" value="{there}"' in form.text) == (200, True), len(path)


@pytest.mark.rules("G12")
async def test_g12_the_cookie_is_no_token_and_no_script_or_other_site_gets_it(site: Served) -> None:
    token = site.tokens[Role.AUDITOR]
    async with visitor(site, None) as somebody:
        answer = await somebody.log_in(token)
        value, flags = _cookie(answer, NAME)
        assert flags == {"httponly": "True", "samesite": "strict", "path": "/", "max-age": "28800"}
        assert len(value) == 43
        assert token not in answer.headers.get("set-cookie", "")
        assert token.rsplit("_", 1)[0] not in str(answer.headers)
        again, _ = _cookie(await somebody.log_in(token), NAME)
        assert again != value
    async with visitor(site, None, origin="https://api.example") as somebody:
        headers = {"Origin": "https://api.example"}
        answer = await somebody.client.post("/login", data={"token": token}, headers=headers)
        _, flags = _cookie(answer, f"__Host-{NAME}")
        assert (flags["secure"], "domain" in flags) == ("True", False)


async def test_behind_something_that_speaks_tls_the_cookie_is_kept_to_that(
    shown_dsns: dict[str, str], site: Served
) -> None:
    limits = ApiLimits(secure_cookies=True)
    async with served(shown_dsns, tokens=site.tokens, limits=limits) as behind, visitor(behind, None) as somebody:
        value, flags = _cookie(await somebody.log_in(site.tokens[Role.READER]), f"__Host-{NAME}")
        assert flags["secure"] == "True"
        page = await somebody.get("/runs", headers={"Cookie": f"__Host-{NAME}={value}"})
        assert page.status_code == 200
        plain = await somebody.get("/runs", headers={"Cookie": f"{NAME}={value}"})
        assert plain.status_code == 303, "a cookie that another name could have set"


async def test_a_login_with_a_new_cookie_ends_the_old_one(site: Served) -> None:
    async with visitor(site, Role.READER) as somebody:
        old = dict(somebody.client.cookies)
        await somebody.log_in(site.tokens[Role.READER])
        somebody.client.cookies.clear()
        answer = await somebody.get("/runs", headers={"Cookie": f"{NAME}={old[NAME]}"})
        assert answer.status_code == 303


async def test_a_token_that_does_not_work_is_said_to_and_never_shown(site: Served) -> None:
    async with visitor(site, None) as somebody:
        for token in (new_token().text, site.tokens[Role.READER][:-1], "", "x" * 1000, "<script>"):
            answer = await somebody.log_in(token)
            assert answer.status_code == 401
            assert "is not valid" in answer.text
            assert not answer.headers.get_list("set-cookie")
            assert len(token) < 9 or token not in answer.text
        assert (await somebody.log_in("x" * 1025)).status_code == 422


async def test_a_login_leads_nowhere_else(site: Served) -> None:
    async with visitor(site, None) as somebody:
        for there in ELSEWHERE:
            answer = await somebody.log_in(site.tokens[Role.READER], there)
            assert (answer.status_code, answer.headers["location"]) == (303, "/"), there
        somebody.client.cookies.clear()
        form = await somebody.get("/login", params={"next": "//evil.example"})
        assert 'name="next" value="/"' in form.text


async def test_a_session_ends_when_it_is_told_to_and_with_its_token(site: Served, shown_dsns: dict[str, str]) -> None:
    async with visitor(site, Role.READER) as somebody:
        cookie = dict(somebody.client.cookies)[NAME]
        answer = await somebody.send("/logout", await somebody.form("/runs"))
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert _cookie(answer, NAME)[1].get("max-age") == "0"
        again = await somebody.get("/runs", headers={"Cookie": f"{NAME}={cookie}"})
        assert again.status_code == 303
    made = new_token()
    async with await ServedLedger.open(shown_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        await ledger.create_token(made.token_id, name="short", role="reader", digest=made.digest, seconds=None)
        async with visitor(site, None) as somebody:
            await somebody.log_in(made.text)
            assert (await somebody.get("/runs")).status_code == 200
            await ledger.revoke_token(made.token_id)
            assert (await somebody.get("/runs")).status_code == 303
            assert (await somebody.get(f"{BASE}/runs")).status_code == 401


async def test_a_session_lasts_as_long_as_the_settings_say(shown_dsns: dict[str, str], site: Served) -> None:
    limits = ApiLimits(session_hours=2, failed_logins_per_minute=1e6)
    async with served(shown_dsns, tokens=site.tokens, limits=limits) as brief, visitor(brief, Role.READER) as somebody:
        async with visitor(brief, None) as nobody:
            assert "a session of 2 h and" in (await nobody.get("/login")).text
        sessions = brief.app.callers.sessions
        for late, status in ((7000, 200), (7201, 303)):
            sessions._clock = lambda late=late: time.monotonic() + late  # type: ignore[misc] # bound now, not later
            assert (await somebody.get("/runs")).status_code == status


async def test_the_cookie_reads_the_api_from_our_own_pages_and_orders_nothing(site: Served) -> None:
    async with visitor(site, Role.OPERATOR) as somebody:
        own = await somebody.get(f"{BASE}/runs", headers={"Sec-Fetch-Site": "same-origin"})
        assert own.status_code == 200
        for kind in ("cross-site", "same-site"):
            foreign = await somebody.get(f"{BASE}/runs", headers={"Sec-Fetch-Site": kind})
            assert foreign.status_code == 401, kind
        order = await somebody.client.post(f"{BASE}/commits", json={}, headers={"Origin": ORIGIN})
        assert order.status_code == 401
        wrong = await somebody.get(f"{BASE}/runs", headers={"Authorization": "Bearer nothing"})
        assert wrong.status_code == 401  # what is said counts, and not what is carried along


async def test_failed_logins_are_slowed_down_for_nobody_else(shown_dsns: dict[str, str], site: Served) -> None:
    limits = ApiLimits(failed_logins_per_minute=1)
    async with served(shown_dsns, tokens=site.tokens, limits=limits) as slow, visitor(slow, None) as somebody:
        statuses = [(await somebody.log_in("wrong")).status_code for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        assert (await somebody.log_in(site.tokens[Role.READER])).status_code == 303


async def test_local_mode_asks_nobody_and_takes_no_foreign_form(shown_dsns: dict[str, str]) -> None:
    async with (
        served(shown_dsns, local=True, tokens={}) as local,
        visitor(local, None, origin="http://localhost:8400") as somebody,
    ):
        page = await somebody.get("/")
        assert page.status_code == 200
        assert "Log out" not in page.text
        assert (await somebody.get("/login")).status_code == 303
        assert (await somebody.client.get("/", headers={"Host": "evil.example"})).status_code == 403
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            answer = await somebody.client.post("/commit", data={}, headers=headers)
            assert "ForeignOriginError" in answer.text, headers
        without_key = await somebody.client.post("/commit", data={"run": "a"})
        assert (without_key.status_code, "ForeignFormError" in without_key.text) == (403, True)
