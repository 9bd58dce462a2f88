"""What is not GraphQL: credentials, schema, malformed requests."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from consumers.infrahub.sandbox import RunningSandbox, SandboxStartError
from ledger.errors import ConfigurationError
from tests.support.graphql_client import GraphQLClient
from tests.support.sandbox_schema import sandbox_schema

pytestmark = pytest.mark.contract

READ = {"query": "{ LabTag { count } }"}
WRITE = {"query": 'mutation { LabTagUpsert(data: {name: {value: "t"}}) { ok } }'}
SYNTAX_ERROR = {"query": "{ LabTag { count }"}


def _post(sandbox: RunningSandbox, body: object, token: str | None) -> httpx.Response:
    headers = {} if token is None else {"X-INFRAHUB-KEY": token}
    return httpx.post(f"{sandbox.url}/graphql", json=body, headers=headers, trust_env=False)


def test_a_wrong_token_is_refused_for_reads_too(sandbox: RunningSandbox) -> None:
    for body in (READ, WRITE):
        response = _post(sandbox, body, "wrong")
        assert response.status_code == 401
        assert response.json()["errors"][0]["extensions"]["code"] == "AUTHENTICATION_REQUIRED"
    assert httpx.get(f"{sandbox.url}/api/schema", headers={"X-INFRAHUB-KEY": "wrong"}).status_code == 401


def test_without_a_token_one_may_read_but_not_write(sandbox: RunningSandbox) -> None:
    assert _post(sandbox, READ, None).json() == {"data": {"LabTag": {"count": 0}}}
    assert _post(sandbox, WRITE, None).status_code == 401
    assert sandbox.store.count("LabTag") == 0
    assert len(sandbox.journal) == 0


@pytest.mark.parametrize("token", ["wrong", "lab-token\u00ff", ""])
def test_no_part_of_a_token_is_enough(sandbox: RunningSandbox, token: str) -> None:
    headers = httpx.Headers([(b"X-INFRAHUB-KEY", token.encode("latin-1"))])
    response = httpx.post(f"{sandbox.url}/graphql", json=WRITE, headers=headers, trust_env=False)
    assert response.status_code == 401


def test_the_schema_is_served_as_it_was_given_under_the_hash_of_its_content(lab: GraphQLClient) -> None:
    served = lab.http.get("/api/schema", params={"branch": "main"}).json()
    summary = lab.http.get("/api/schema/summary", params={"branch": "main"}).json()
    assert served == sandbox_schema() | {"main": summary["main"]}
    assert set(summary["nodes"]) == {raw["kind"] for raw in sandbox_schema()["nodes"]}
    for path in ("/api/schema", "/api/schema/summary"):
        unknown = lab.http.get(path, params={"branch": "nope"})
        assert (unknown.status_code, unknown.json()["errors"][0]["message"]) == (400, "Branch: nope not found.")


def test_another_schema_has_another_hash(lab: GraphQLClient) -> None:
    other = sandbox_schema()
    other["nodes"][0]["attributes"][0]["optional"] = not other["nodes"][0]["attributes"][0]["optional"]
    with RunningSandbox(other, token="t") as running:
        changed = httpx.get(f"{running.url}/api/schema/summary", trust_env=False).json()
    assert changed["main"] != lab.http.get("/api/schema/summary").json()["main"]
    assert changed["nodes"] != lab.http.get("/api/schema/summary").json()["nodes"]


def test_info_and_config_need_no_token(sandbox: RunningSandbox) -> None:
    info = httpx.get(f"{sandbox.url}/api/info", trust_env=False).json()
    assert info == {"deployment_id": sandbox.store.deployment_id, "version": "1.11.9"}
    assert httpx.get(f"{sandbox.url}/api/config", trust_env=False).status_code == 200


def test_a_list_of_requests_is_a_400(lab: GraphQLClient) -> None:
    assert lab.http.post("/graphql", json=[READ]).status_code == 400


@pytest.mark.parametrize("body", [{}, {"query": 5}, {"query": "{ __typename }", "variables": [1]}])
def test_a_body_that_is_no_request_is_a_plain_500(lab: GraphQLClient, body: object) -> None:
    response = lab.http.post("/graphql", json=body)
    assert (response.status_code, response.text) == (500, "Internal Server Error")


def test_a_body_that_is_no_json_is_a_400(lab: GraphQLClient) -> None:
    assert lab.http.post("/graphql", content=b"\xff{").status_code == 400


def test_a_syntax_error_is_a_plain_500_behind_which_the_connection_is_gone_unannounced(
    sandbox: RunningSandbox,
) -> None:
    address = urlsplit(sandbox.url)
    with socket.create_connection((str(address.hostname), address.port or 0), timeout=20) as connection:
        connection.sendall(_raw_request(SYNTAX_ERROR))
        answer = b""
        while not answer.endswith(b"Internal Server Error"):
            answer += connection.recv(4096) or pytest.fail(f"the answer ends early: {answer!r}")
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert b"connection:" not in answer.lower()
        assert _next_answer(connection, _raw_request(READ)) == b""


def _raw_request(document: object) -> bytes:
    body = json.dumps(document).encode()
    return f"POST /graphql HTTP/1.1\r\nhost: lab\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def _next_answer(connection: socket.socket, request: bytes) -> bytes:
    """What comes back for one more request on a connection: nothing, where it was closed."""
    try:
        connection.sendall(request)
        return connection.recv(4096)
    except ConnectionError:
        return b""


def test_the_operation_is_chosen_by_name(lab: GraphQLClient) -> None:
    text = "query A { LabTag { count } } query B { LabSite { count } }"
    assert lab.http.post("/graphql", json={"query": text, "operationName": "B"}).json() == {
        "data": {"LabSite": {"count": 0}}
    }
    for body in ({"query": text}, {"query": text, "operationName": "C"}):
        assert lab.http.post("/graphql", json=body).json()["data"] is None


def test_a_lone_surrogate_is_refused_as_a_fault_of_the_server(lab: GraphQLClient) -> None:
    text = "mutation A($v: String) { LabTagUpsert(data: {name: {value: $v}}) { object { name { value } } } }"
    response = lab.http.post("/graphql", content=json.dumps({"query": text, "variables": {"v": "\ud800"}}))
    (error,) = response.json()["errors"]
    assert (error["extensions"]["http_status"], error["path"]) == (500, ["LabTagUpsert"])


def test_a_schema_document_of_another_shape_is_refused(tmp_path: Path) -> None:
    for name, content in {"text": "not json", "list": "[]", "empty": "{}"}.items():
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(ConfigurationError, match="Next: "):
            RunningSandbox(path, token="t")
    with pytest.raises(ConfigurationError, match="FileNotFoundError"):
        RunningSandbox(tmp_path / "absent", token="t")


def test_a_taken_port_is_refused_and_a_stopped_sandbox_has_no_address(sandbox: RunningSandbox) -> None:
    taken = int(sandbox.url.rpartition(":")[2])
    second = RunningSandbox(sandbox_schema(), token="t", port=taken)
    with pytest.raises(SandboxStartError, match="Next: choose another port"):
        second.start()
    with pytest.raises(SandboxStartError, match="not started"):
        _ = second.url


def test_a_sandbox_starts_again_with_what_it_held(sandbox: RunningSandbox) -> None:
    sandbox.store.create("LabTag", {"name": "t"})
    sandbox.stop()
    with sandbox as again, GraphQLClient(again) as client:
        assert client.query("{ LabTag { count } }") == {"LabTag": {"count": 1}}
