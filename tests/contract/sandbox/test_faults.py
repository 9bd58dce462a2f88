"""Faults: what the client sees, and whether the write happened."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest

from consumers.infrahub.sandbox import FaultAnswer, FaultRule, RunningSandbox
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract

UPSERT = "mutation Apply($data: LabTagUpsertInput!) { LabTagUpsert(data: $data) { ok object { id } } }"


def _upsert(lab: GraphQLClient, name: str = "t") -> httpx.Response:
    return lab.post(UPSERT, {"data": values(name=name)})


@pytest.mark.parametrize("write", [True, False])
def test_a_dropped_answer_looks_the_same_whether_it_wrote_or_not(
    lab: GraphQLClient, sandbox: RunningSandbox, write: bool
) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.DROP, write=write))
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        _upsert(lab)
    assert sandbox.store.count("LabTag") == int(write)
    (entry,) = sandbox.journal.entries()
    assert (entry.written, entry.fault) == (write, "drop")


def test_a_connection_may_be_lost_behind_a_true_answer(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    fault = sandbox.faults.add(FaultRule(answer=FaultAnswer.TRUE_THEN_GONE))
    assert _upsert(lab, "first").json()["data"]["LabTagUpsert"]["ok"] is True
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        _upsert(lab, "second")
    assert (fault.fired, sandbox.store.count("LabTag"), len(sandbox.journal)) == (1, 1, 1)
    assert _upsert(lab, "third").status_code == 200, "over a connection of its own"


def test_a_write_of_more_than_an_event_holds_loses_the_connection_behind_it(
    lab: GraphQLClient, sandbox: RunningSandbox
) -> None:
    device = sandbox.store.create(
        "LabDevice", {"name": "sw1", "site": sandbox.store.create("LabSite", {"name": "dc1"})}
    )
    assert lab.mutate("LabDeviceUpsert", {"id": device, **values(notes="x" * 1_600_000)})["data"]
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        _upsert(lab)
    assert sandbox.store.count("LabTag") == 0


@pytest.mark.parametrize(
    ("answer", "extensions", "written"),
    [
        (FaultAnswer.DEFUNCT_CONNECTION, {"code": "UNDEFINED_ERROR", "http_status": 500}, 1),
        (FaultAnswer.DATABASE_AWAY, {"code": "UNDEFINED_ERROR", "http_status": 503}, 1),
        (FaultAnswer.MERGE_IN_PROGRESS, {"code": "MERGE_IN_PROGRESS", "http_status": 423}, 0),
        (FaultAnswer.MERGE_RECOVERY_REQUIRED, {"code": "MERGE_RECOVERY_REQUIRED", "http_status": 423}, 0),
    ],
)
def test_an_error_of_a_mutation_that_was_begun(
    lab: GraphQLClient, sandbox: RunningSandbox, answer: FaultAnswer, extensions: dict[str, Any], written: int
) -> None:
    sandbox.faults.add(FaultRule(answer=answer))
    response = _upsert(lab)
    (error,) = response.json()["errors"]
    assert (response.status_code, error["path"]) == (200, ["LabTagUpsert"])
    assert error["extensions"] == {**extensions, "data": {}}
    assert sandbox.store.count("LabTag") == written


@pytest.mark.parametrize("write", [True, False])
def test_a_500_of_text_looks_the_same_whether_it_wrote_or_not(
    lab: GraphQLClient, sandbox: RunningSandbox, write: bool
) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.TEXT_500, write=write))
    response = _upsert(lab)
    assert (response.status_code, response.headers["content-type"]) == (500, "text/plain; charset=utf-8")
    assert sandbox.store.count("LabTag") == int(write)


def test_a_truncated_answer(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.TRUNCATED))
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete"):
        _upsert(lab)
    assert sandbox.store.count("LabTag") == 1


def test_an_answer_that_is_no_json(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.NOT_JSON))
    response = _upsert(lab)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html")
    assert sandbox.store.count("LabTag") == 1


def test_an_empty_list_of_errors_beside_the_data(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.EMPTY_ERRORS))
    document = _upsert(lab).json()
    assert document["errors"] == []
    assert document["data"]["LabTagUpsert"]["ok"] is True


@pytest.mark.parametrize(
    ("answer", "key", "seen"),
    [
        (FaultAnswer.NOT_OK, "ok", False),
        (FaultAnswer.OBJECT_NULL, "object", None),
        (FaultAnswer.EMPTY_ID, "object", {"id": ""}),
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_a_success_that_is_none(
    lab: GraphQLClient, sandbox: RunningSandbox, answer: FaultAnswer, key: str, seen: Any, write: bool
) -> None:
    sandbox.faults.add(FaultRule(answer=answer, write=write))
    assert _upsert(lab).json()["data"]["LabTagUpsert"][key] == seen
    assert sandbox.store.count("LabTag") == int(write)


def test_the_id_of_another_object_is_answered(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    sandbox.faults.add(FaultRule(answer=FaultAnswer.OTHER_ID))
    assert _upsert(lab).json()["data"]["LabTagUpsert"]["object"]["id"] not in ("", tag)


def test_an_error_that_hides_a_committed_write(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.DEFUNCT_CONNECTION))
    response = _upsert(lab)
    (error,) = response.json()["errors"]
    assert response.status_code == 200
    assert response.json()["data"] == {"LabTagUpsert": None}
    assert error["message"].startswith("Failed to read from defunct connection IPv4Address(")
    assert error["path"] == ["LabTagUpsert"]
    assert error["extensions"] == {"code": "UNDEFINED_ERROR", "http_status": 500, "data": {}}
    assert sandbox.store.count("LabTag") == 1


def test_a_shed_request_never_ran_and_says_so(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.SHED_429))
    response = _upsert(lab)
    assert response.status_code == 429
    assert (response.headers["retry-after"], response.headers["x-infrahub-admission"]) == ("1", "shed")
    error = {"message": "Server is shedding load; retry later.", "extensions": {"code": 429}}
    assert response.json() == {"data": None, "errors": [error]}
    assert sandbox.store.count("LabTag") == 0


@pytest.mark.parametrize(
    ("answer", "status"), [(FaultAnswer.UNAVAILABLE_503, 503), (FaultAnswer.UNAUTHORISED_401, 401)]
)
@pytest.mark.parametrize("write", [None, True])
def test_a_refusing_status_may_lie(
    lab: GraphQLClient, sandbox: RunningSandbox, answer: FaultAnswer, status: int, write: bool | None
) -> None:
    sandbox.faults.add(FaultRule(answer=answer, write=write))
    response = _upsert(lab)
    assert response.status_code == status
    assert "errors" in response.json()
    assert sandbox.store.count("LabTag") == int(bool(write))


def test_a_request_goes_on_after_its_client_has_left(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    fault = sandbox.faults.add(FaultRule(hold="before-write"))
    lab.http.timeout = httpx.Timeout(0.2)
    with pytest.raises(httpx.ReadTimeout):
        _upsert(lab)
    assert fault.wait_reached(5)
    assert sandbox.store.count("LabTag") == 0
    fault.release()
    with GraphQLClient(sandbox) as other:
        while not sandbox.journal.entries()[0].written:
            other.query("{ LabTag { count } }")
    assert sandbox.store.count("LabTag") == 1


def test_a_held_answer_comes_when_it_is_released(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    fault = sandbox.faults.add(FaultRule(hold="before-answer"))
    answers: list[httpx.Response] = []
    client = threading.Thread(target=lambda: answers.append(_upsert(lab)))
    client.start()
    assert fault.wait_reached(10)
    assert sandbox.store.count("LabTag") == 1
    assert answers == []
    fault.release()
    client.join(10)
    assert answers[0].json()["data"]["LabTagUpsert"]["ok"] is True


@pytest.mark.parametrize("moment", ["delay_before_write", "delay_before_answer"])
def test_a_delay_is_longer_than_the_clients_patience(lab: GraphQLClient, sandbox: RunningSandbox, moment: str) -> None:
    sandbox.faults.add(FaultRule.model_validate({moment: 30}))
    lab.http.timeout = httpx.Timeout(0.2)
    with pytest.raises(httpx.ReadTimeout):
        _upsert(lab)
    assert sandbox.store.count("LabTag") == int(moment == "delay_before_answer")


def test_the_nth_request_and_as_many_as_wanted_are_hit(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    fault = sandbox.faults.add(FaultRule(answer=FaultAnswer.SHED_429, nth=2, count=2))
    assert [_upsert(lab, name).status_code for name in "abcd"] == [200, 429, 429, 200]
    assert (fault.seen, fault.fired) == (4, 2)


def test_without_a_count_every_request_is_hit_until_the_rules_are_cleared(
    lab: GraphQLClient, sandbox: RunningSandbox
) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.SHED_429, count=None))
    assert [_upsert(lab, name).status_code for name in "abc"] == [429, 429, 429]
    sandbox.faults.clear()
    assert _upsert(lab).status_code == 200


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"kind": "LabTag"}, True),
        ({"kind": "LabSite"}, False),
        ({"action": "Upsert"}, True),
        ({"action": "Create"}, False),
        ({"mutation": "LabTagUpsert"}, True),
        ({"mutation": "LabTagCreate"}, False),
        ({"branch": "main"}, True),
        ({"branch": "lab1"}, False),
        ({"contains": "needle"}, True),
        ({"contains": "straw"}, False),
        ({"operation": "query"}, False),
        ({"operation": "any"}, True),
    ],
)
def test_a_rule_hits_what_it_names(
    lab: GraphQLClient, sandbox: RunningSandbox, rule: dict[str, Any], fits: bool
) -> None:
    sandbox.faults.add(FaultRule.model_validate({"answer": "shed-429", **rule}))
    assert (_upsert(lab, "needle").status_code == 429) is fits


def test_reads_can_fail_too(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.DROP, operation="query", kind="LabTag", nth=2))
    assert lab.query("{ LabTag { count } }") == {"LabTag": {"count": 0}}
    with pytest.raises(httpx.RemoteProtocolError):
        lab.query("{ LabTag { count } }")


def test_something_can_happen_between_two_pages(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    first = sandbox.store.create("LabTag", {"name": "first"})
    sandbox.store.create("LabTag", {"name": "second"})
    rule = FaultRule(operation="query", nth=2)
    sandbox.faults.add(rule, before=lambda: sandbox.store.delete(first))
    pages = [
        [edge["node"]["name"]["value"] for edge in page["LabTag"]["edges"]]
        for page in (
            lab.query(f"{{ LabTag(limit: 1, offset: {offset}) {{ edges {{ node {{ name {{ value }} }} }} }} }}")
            for offset in (0, 1)
        )
    ]
    assert pages == [["first"], []]


def test_the_first_rule_that_hits_serves_a_request(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    sandbox.faults.add(FaultRule(answer=FaultAnswer.SHED_429))
    sandbox.faults.add(FaultRule(answer=FaultAnswer.UNAVAILABLE_503))
    assert [_upsert(lab).status_code for _ in range(3)] == [429, 503, 200]


def test_faults_over_http(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    (made,) = lab.http.post("/sandbox/faults", json={"answer": "shed-429", "kind": "LabTag"}).json()
    assert (made["answer"], made["seen"]) == ("shed-429", 0)
    assert _upsert(lab).status_code == 429
    assert lab.http.get("/sandbox/faults").json()[0]["fired"] == 1
    many = lab.http.post("/sandbox/faults", json=[{"answer": "drop"}, {"answer": "drop"}]).json()
    assert [rule["number"] for rule in many] == [2, 3]
    assert lab.http.delete("/sandbox/faults").json() == []
    assert _upsert(lab).status_code == 200


def test_a_held_request_is_released_over_http(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    (made,) = lab.http.post("/sandbox/faults", json={"hold": "before-write"}).json()
    answers: list[httpx.Response] = []
    client = threading.Thread(target=lambda: answers.append(_upsert(lab)))
    client.start()
    (fault,) = sandbox.faults.active()
    assert fault.wait_reached(10)
    with GraphQLClient(sandbox) as other:
        assert other.http.post(f"/sandbox/faults/{made['number']}/release").status_code == 200
        assert other.http.post("/sandbox/faults/99/release").status_code == 404
    client.join(10)
    assert answers[0].status_code == 200


@pytest.mark.parametrize("rule", [{"answer": "nonsense"}, {"unknown": 1}, {"nth": 0}, {"delay_before_write": -1}])
def test_a_rule_that_means_nothing_is_refused(
    lab: GraphQLClient, sandbox: RunningSandbox, rule: dict[str, Any]
) -> None:
    assert lab.http.post("/sandbox/faults", json=rule).status_code == 422
    assert sandbox.faults.active() == []


@pytest.mark.parametrize(("method", "path"), [("GET", "faults"), ("POST", "faults"), ("GET", "journal")])
def test_the_sandboxs_own_routes_need_the_token(sandbox: RunningSandbox, method: str, path: str) -> None:
    response = httpx.request(method, f"{sandbox.url}/sandbox/{path}", json={"answer": "drop"}, trust_env=False)
    assert response.status_code == 401
    assert sandbox.faults.active() == []
