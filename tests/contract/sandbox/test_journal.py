"""The journal proves what was on the wire."""

from __future__ import annotations

import time

import pytest

from consumers.infrahub.sandbox import FaultAnswer, FaultRule, RunningSandbox
from consumers.infrahub.sandbox.journal import SENDER_HEADER
from tests.support.graphql_client import GraphQLClient, values

pytestmark = pytest.mark.contract


def test_every_mutation_is_kept_in_order_with_what_was_sent(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    tag = lab.write("LabTagUpsert", values(name="t"))
    lab.refused("LabTagUpsert", {"id": "gone"})
    lab.mutate("LabTagDelete", {"id": tag}, "ok")
    lab.query("{ LabTag { count } }")
    entries = sandbox.journal.entries()
    assert [(entry.position, entry.mutation, entry.written, entry.object_id) for entry in entries] == [
        (1, "LabTagUpsert", True, tag),
        (2, "LabTagUpsert", False, None),
        (3, "LabTagDelete", True, tag),
    ]
    assert entries[0].data == {"name": {"value": "t"}}
    assert entries[0].variables == {"data": {"name": {"value": "t"}}}
    assert (entries[0].kind, entries[0].action, entries[0].branch) == ("LabTag", "Upsert", "main")


def test_null_and_absent_stay_apart_in_what_was_sent(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.write("LabSiteUpsert", {"name": {"value": "s"}, "description": {"value": None}, "tags": []})
    data = sandbox.journal.entries()[0].data
    assert data == {"name": {"value": "s"}, "description": {"value": None}, "tags": []}
    assert "id" not in data


def test_a_mutation_whose_variables_are_refused_was_on_the_wire_too(
    lab: GraphQLClient, sandbox: RunningSandbox
) -> None:
    lab.mutate("LabTagUpsert", {"nam": {"value": "t"}})
    lab.post('mutation { LabTagUpsert(data: {nam: {value: "t"}}) { ok } }')
    entries = sandbox.journal.entries()
    assert [(entry.mutation, entry.written) for entry in entries] == [("LabTagUpsert", False)] * 2
    assert entries[0].variables == {"data": {"nam": {"value": "t"}}}


def test_a_values_of_the_document_are_in_the_data(lab: GraphQLClient, sandbox: RunningSandbox) -> None:
    lab.query('mutation { one: LabTagUpsert(data: {name: {value: "t"}}) { ok } }')
    (entry,) = sandbox.journal.entries()
    assert (entry.key, entry.data, entry.variables) == ("one", {"name": {"value": "t"}}, {})


def test_the_journal_over_http(lab: GraphQLClient) -> None:
    for name in "abc":
        lab.write("LabTagUpsert", values(name=name))
    positions = [entry["position"] for entry in lab.http.get("/sandbox/journal").json()]
    assert positions == [1, 2, 3]
    later = lab.http.get("/sandbox/journal", params={"after": 2}).json()
    assert [entry["data"] for entry in later] == [{"name": {"value": "c"}}]
    assert lab.http.get("/sandbox/journal", params={"after": "x"}).status_code == 422
    assert lab.http.delete("/sandbox/journal").json() == []
    lab.write("LabTagUpsert", values(name="d"))
    assert [entry["position"] for entry in lab.http.get("/sandbox/journal").json()] == [4]


def test_an_entry_tells_who_sent_it_and_from_when_on_it_writes_nothing_more(
    lab: GraphQLClient, sandbox: RunningSandbox
) -> None:
    under_way: list[float | None] = []
    sandbox.faults.add(FaultRule(), before=lambda: under_way.append(sandbox.journal.entries()[-1].decided_at))
    sandbox.faults.add(FaultRule(answer=FaultAnswer.UNAVAILABLE_503))
    began = time.time()
    for name in ("by rule", "not written", "true"):
        lab.http.post(
            "/graphql",
            headers={SENDER_HEADER: f"of {name}"},
            json={"query": f'mutation {{ LabTagUpsert(data: {{name: {{value: "{name}"}}}}) {{ ok }} }}'},
        )
    entries = sandbox.journal.entries()
    assert [entry.sender for entry in entries] == ["of by rule", "of not written", "of true"]
    assert [entry.written for entry in entries] == [True, False, True]
    moments = [moment for entry in entries for moment in (entry.received_at, entry.decided_at or 0.0)]
    assert [began, *moments] == sorted([began, *moments])
    assert under_way == [None]
