"""Who may ask for what, cell by cell; and what nobody gets."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.api.application import addresses
from ledger.api.gate import HEADERS
from ledger.api.limits import ApiLimits
from ledger.api.rights import NOBODY_ASKED, RIGHTS, Address
from ledger.api.serving import ApiAddressError, UnguardedAddressError, listen
from ledger.api.tokens import SHAPE, Role, belongs, digest, new_token
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.plan.canonical import object_key
from ledger.store.served import ServedLedger
from tests.support.api import BASE, Served, served
from tests.support.recorded_runs import Recorder, make_plan
from tests.support.store import connection_to

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))

TABLE: dict[Address, str] = {
    ("GET", "/metrics"): "reader auditor operator",
    ("GET", "/api/v1/openapi.json"): "reader auditor operator",
    ("GET", "/api/v1/bindings"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}"): "reader auditor operator",
    ("GET", "/api/v1/runs"): "reader auditor operator",
    ("GET", "/api/v1/workers"): "reader auditor operator",
    ("GET", "/api/v1/objects"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/objects/{object_key}/history"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/objects/{object_key}/blame"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/inbox"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}/summary"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}/operations"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}/operations/{ordinal}"): "reader auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/events"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/events/stream"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/events/{position}"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/events/{position}/body"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}/events"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}/events/stream"): "auditor operator",
    ("GET", "/api/v1/refused-messages"): "auditor operator",
    ("GET", "/api/v1/checkpoint-keys"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/checkpoints"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/checkpoints/{checkpoint}"): "auditor operator",
    ("POST", "/api/v1/bindings/{binding_id}/verify"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/state"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/state/diff"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/export"): "auditor operator",
    ("GET", "/api/v1/bindings/{binding_id}/runs/{run_id}/proofs/{operation_id}"): "auditor operator",
    ("POST", "/api/v1/commits"): "operator",
    ("POST", "/api/v1/bindings/{binding_id}/runs/{run_id}/resume"): "operator",
    ("POST", "/api/v1/bindings/{binding_id}/runs/{run_id}/stop"): "operator",
}
"""What is meant, written down a second time and by hand: a right that is given by mistake shows here."""

_PLAN = make_plan("run-1")
_NAMES = {
    "{binding_id}": "1",
    "{run_id}": "run-1",
    "{ordinal}": "0",
    "{position}": "1",
    "{object_key}": object_key("BuiltinTag", {"name": "create-0"}).hex(),
    "{operation_id}": _PLAN.operations[0].operation_id,
}
_QUERIES = {"/events/stream": "after=999999999", "/state/diff": "from=1&to=2"}
"""Parameters that are needed; and where a stream would begin that this log cannot give: that is answered at once, and
only to who may ask for it."""


def _path(address: Address, **names: str) -> str:
    path = address[1]
    for name, value in (_NAMES | names).items():
        path = path.replace(name, value)
    return path + "".join(f"?{query}" for end, query in _QUERIES.items() if path.endswith(end))


def test_every_address_has_a_row_and_every_row_an_address(api: Served) -> None:
    found = set(addresses(api.app.app)) - {("GET", path) for path in NOBODY_ASKED}
    assert found == set(RIGHTS) == set(TABLE)
    documented = {
        (method.upper(), path) for path, methods in api.app.app.openapi()["paths"].items() for method in methods
    }
    assert documented == set(addresses(api.app.app))


async def test_every_role_at_every_address(api: Served, recording: Recorder) -> None:
    [row] = await recording.ledger.bindings()
    signed = await publish_checkpoint(recording.ledger, row, [KEY])
    names = {"{checkpoint}": str(signed.event_position)}
    wrong = []
    for role, (address, allowed) in itertools.product(Role, TABLE.items()):
        async with api.client(role) as client:
            sent: dict[str, str] | None = {} if address[0] == "POST" else None
            response = await client.request(address[0], _path(address, **names), json=sent)
        may = role in allowed.split()
        refused = response.status_code == 403 and response.json()["code"] == "ForbiddenError"
        if may == refused or response.status_code in (401, 404, 405, 500):
            wrong.append((role, address, response.status_code, response.text))
    assert wrong == []


async def test_no_token_no_answer_whether_or_not_the_address_is_there(api: Served) -> None:
    token = api.tokens[Role.OPERATOR]
    spoiled = token[:-1] + ("A" if token[-1] != "A" else "B")
    made_up = new_token().text
    bearers = [f"Bearer {text}" for text in (spoiled, made_up, f"{token}x", token[:20])]
    headers = [None, "", "Bearer", f"Basic {token}", token, *bearers]
    async with api.client(None) as client:
        for address in [*TABLE, ("GET", "/api/secret"), ("GET", "/api/v1/secret"), ("DELETE", "/api/v1/runs")]:
            response = await client.request(address[0], _path(address))
            assert (response.status_code, response.json()["code"]) == (401, "UnauthenticatedError"), address
            assert response.headers["www-authenticate"].startswith("Bearer")
        for header in headers:
            response = await client.get(f"{BASE}/runs", headers={} if header is None else {"Authorization": header})
            assert response.status_code == 401, header
            assert "alt_" not in response.text.replace("apply-ledger", "")
        assert (await client.get(f"{BASE}/runs", params={"token": token})).status_code == 401
        for path in NOBODY_ASKED:
            assert (await client.get(path)).status_code == 200


async def test_a_token_that_was_revoked_or_ran_out_works_no_more(
    api: Served, postgres18_ledger_dsns: dict[str, str]
) -> None:
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        connection_to(postgres18_ledger_dsns["admin"]) as admin,
    ):
        short = new_token()
        await ledger.create_token(short.token_id, name="short", role="reader", digest=short.digest, seconds=600.0)
        async with api.client(None, ) as client:  # fmt: skip
            headers = {"Authorization": f"Bearer {short.text}"}
            assert (await client.get(f"{BASE}/runs", headers=headers)).status_code == 200
            stored = await ledger.token(short.token_id)
            assert stored is not None
            assert stored.last_used_at is not None
            await admin.execute("alter table ledger.api_token disable trigger refuse_row_change")
            await admin.execute("update ledger.api_token set expires_at = clock_timestamp() where name = 'short'")
            assert (await client.get(f"{BASE}/runs", headers=headers)).status_code == 401
        reader = (await ledger.tokens())[0]
        assert await ledger.revoke_token(reader.token_id)
        async with api.client(Role.READER) as client:
            assert (await client.get(f"{BASE}/runs")).status_code == 401
        assert not await ledger.revoke_token("f" * 16)


async def test_a_token_is_stored_as_a_digest_and_compared_whole(postgres18_ledger_dsns: dict[str, str]) -> None:
    made = new_token()
    assert SHAPE.fullmatch(made.text)
    async with (
        await ServedLedger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger,
        connection_to(postgres18_ledger_dsns["admin"]) as admin,
    ):
        await ledger.create_token(made.token_id, name="n", role="auditor", digest=made.digest, seconds=None)
        kept = await admin.fetchval("select t::text from ledger.api_token t")
        assert made.text[-43:] not in kept
        assert digest(made.text).hex() in kept
        stored = await ledger.token(made.token_id)
        assert belongs(made.text, stored)
        assert not belongs(made.text[:-1] + "!", stored)
        assert not belongs(made.text, None)


async def test_no_token_is_logged_or_repeated(api: Served, capsys: pytest.CaptureFixture[str]) -> None:
    token = api.tokens[Role.OPERATOR]
    async with api.client() as client:
        for path in (f"/runs?source={token}", f"/runs?cursor={token}", f"/{token}", f"/bindings/1/runs/{token}"):
            response = await client.get(BASE + path)
            assert response.status_code in (200, 400, 404, 422)
            assert token not in response.text
        refused = await client.post(f"{BASE}/commits", json={"run": token, "expected_checksum": token, token: token})
        assert token not in refused.text
    said = capsys.readouterr()
    assert "answered" in said.out + said.err
    assert token not in said.out + said.err


async def test_local_mode_is_for_this_machine_and_its_own_pages(postgres18_ledger_dsns: dict[str, str]) -> None:
    async with served(postgres18_ledger_dsns, local=True, tokens={}) as opened, opened.client(None) as client:
        for host, status in (("localhost:8400", 200), ("127.0.0.1", 200), ("[::1]:8400", 200), ("evil.example", 403),
                             ("localhost.evil.example", 403), ("", 403), ("[", 403)):  # fmt: skip
            assert (await client.get(f"{BASE}/runs", headers={"Host": host})).status_code == status, host
        path = f"{BASE}/bindings/1/runs/run-1/stop"
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            response = await client.post(path, json={}, headers={"Host": "localhost", **headers})
            assert response.json()["code"] == "ForeignOriginError", headers
        own = await client.post(path, json={}, headers={"Host": "localhost", "Origin": "http://localhost"})
        assert own.json()["code"] == "OrdersNotTakenError"
        plain = await client.post(path, content=b"{}", headers={"Host": "localhost", "Content-Type": "text/plain"})
        assert plain.status_code == 415


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_local_mode_is_refused_on_any_other_address(host: str) -> None:
    with pytest.raises(UnguardedAddressError):
        listen(host, 0, local=True)


def test_a_port_that_is_taken_is_named() -> None:
    with listen("127.0.0.1", 0, local=True) as first, pytest.raises(ApiAddressError, match=r"127\.0\.0\.1 port"):
        listen("127.0.0.1", first.getsockname()[1], local=True)


async def _pieces() -> AsyncIterator[bytes]:
    """A body that does not say how long it is."""
    for _ in range(100):
        yield b"x" * 100


async def test_limits_of_rate_body_and_nesting(postgres18_ledger_dsns: dict[str, str]) -> None:
    limits = ApiLimits(requests_per_second=0.001, burst=5, failed_logins_per_minute=0.001, max_body_bytes=1024)
    async with served(postgres18_ledger_dsns, limits=limits) as opened:
        async with opened.client(Role.OPERATOR) as client:
            path = f"{BASE}/bindings/1/runs/run-1/stop"
            large = await client.post(path, content=b'{"reason": "%s"}' % (b"x" * 2000))
            assert (large.status_code, large.json()["code"]) == (413, "RequestTooLargeError")

            chunked = await client.post(path, content=_pieces())
            assert chunked.status_code == 413
            deep = await client.post(path, content=b"[" * 1000, headers={"Content-Type": "application/json"})
            assert (deep.status_code, "nesting" in deep.json()["expected"]) == (422, True)
            quotes = await client.post(path, content=b'"\\' * 500, headers={"Content-Type": "application/json"})
            assert quotes.status_code == 422
            for _ in range(2):
                last = await client.get(f"{BASE}/runs")
            assert (last.status_code, last.json()["code"]) == (429, "TooManyRequestsError")
            assert int(last.headers["retry-after"]) > 0
        async with opened.client(Role.READER) as client:
            assert (await client.get(f"{BASE}/runs")).status_code == 200
        async with opened.client(None) as client:
            answers = [(await client.get(f"{BASE}/runs")).status_code for _ in range(12)]
            assert answers == [401] * 10 + [429] * 2


async def test_headers_of_safety_are_on_every_answer_and_cors_on_none(api: Served) -> None:
    async with api.client() as client:
        for path in (f"{BASE}/runs", f"{BASE}/nothing", "/healthz", f"{BASE}/runs?limit=0", f"{BASE}/openapi.json"):
            response = await client.get(path, headers={"Origin": "http://other.example"})
            for name, value in HEADERS.items():
                assert response.headers[name] == value, path
            assert "unsafe-inline" not in response.headers["content-security-policy"]
            assert not [name for name in response.headers if name.startswith("access-control")]
    async with api.client(None) as client:
        assert (await client.get(f"{BASE}/runs")).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (ApiLimits(), None),
        (ApiLimits(secure_cookies=True), None),
        (ApiLimits(hsts_seconds=31_536_000), None),
        (ApiLimits(hsts_seconds=31_536_000, secure_cookies=True), "max-age=31536000"),
    ],
    ids=["neither", "tls", "wanted without tls", "wanted with tls"],
)
async def test_browsers_are_kept_to_tls_where_that_is_wanted_and_spoken(
    postgres18_ledger_dsns: dict[str, str], limits: ApiLimits, told: str | None
) -> None:
    async with served(postgres18_ledger_dsns, limits=limits) as opened, opened.client(None) as client:
        assert (await client.get("/healthz")).headers.get("strict-transport-security") == told


async def test_pages_of_other_sites_that_are_named_may_read_and_no_others(
    postgres18_ledger_dsns: dict[str, str],
) -> None:
    limits = ApiLimits(cors_origins=("https://grafana.example",))
    async with served(postgres18_ledger_dsns, limits=limits) as opened, opened.client(None) as client:
        for origin, status in (("https://grafana.example", 200), ("https://evil.example", 400)):
            headers = {"Origin": origin, "Access-Control-Request-Method": "GET"}
            asked = await client.options(f"{BASE}/runs", headers=headers)
            assert (asked.status_code, asked.headers.get("access-control-allow-origin") == origin) == (
                status,
                status == 200,
            )
        post = {"Origin": "https://grafana.example", "Access-Control-Request-Method": "POST"}
        assert (await client.options(f"{BASE}/commits", headers=post)).status_code == 400
        assert (await client.options(f"{BASE}/runs")).status_code == 401
    async with served(postgres18_ledger_dsns, tokens=opened.tokens) as closed, closed.client(None) as client:
        headers = {"Origin": "https://grafana.example", "Access-Control-Request-Method": "GET"}
        assert (await client.options(f"{BASE}/runs", headers=headers)).status_code == 401


@pytest.mark.rules("G11")
async def test_g11_every_error_is_a_problem_document(api: Served) -> None:
    async with api.client() as client:
        answers = await asyncio.gather(
            client.get(f"{BASE}/nothing"),
            client.get("/api/nothing"),
            client.delete(f"{BASE}/runs"),
            client.get(f"{BASE}/runs/"),
            client.get(f"{BASE}/bindings/7"),
            client.post(f"{BASE}/commits", content=b"{", headers={"Content-Type": "application/json"}),
            client.post(f"{BASE}/commits", content=b"\xff\xfe", headers={"Content-Type": "application/json"}),
            client.post(f"{BASE}/commits"),
        )
        assert [answer.status_code for answer in answers] == [404, 404, 405, 404, 404, 422, 422, 422]
        for answer in answers:
            assert answer.headers["content-type"] == "application/problem+json"
            problem = answer.json()
            assert problem["status"] == answer.status_code
            assert problem["instance"] == answer.request.url.path
            assert problem["type"].startswith("urn:apply-ledger:problem:")
            assert all(
                problem[name] for name in ("title", "detail", "code", "checked", "expected", "found", "next_action")
            )


async def test_a_defect_shows_nothing_of_itself(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken() -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(api.service.reader, "workers", broken)
    async with api.client() as client:
        response = await client.get(f"{BASE}/workers")
    assert (response.status_code, response.json()["code"]) == (500, "DefectError")
    assert "hunter2" not in response.text
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_metrics_count_by_address_and_name_no_run(api: Served) -> None:
    async with api.client() as client:
        await client.get(f"{BASE}/bindings/1/runs/run-1")
        await client.get(f"{BASE}/nothing")
        text = (await client.get("/metrics")).text
    path = "/api/v1/bindings/{binding_id}/runs/{run_id}"
    assert f'apply_ledger_http_requests_total{{address="{path}",method="GET",status="200"}} 1.0' in text
    assert 'address="none",method="GET",status="404"' in text
    assert "run-1" not in text


async def test_readiness_names_what_is_away(api: Served) -> None:
    follower = api.service.follower
    await follower.__aexit__(None, None, None)  # its next look would find that all is well
    follower.trouble = "LedgerUnavailableError: the connection"
    async with api.client(None) as client:
        response = await client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["checks"]["database"] == "ok"
    assert response.json()["checks"]["projections"].startswith("LedgerUnavailableError")
