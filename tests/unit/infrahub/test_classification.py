"""The table of answers, line by line: from the table, over every combination of facts, and with whole answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from consumers.infrahub.answers import Answer, Shape, read_answer
from consumers.infrahub.classification import TABLE, Row, Verdict, advice_while_planning, classify
from consumers.infrahub.exchange import NEVER_SENT, Event, Exchange
from consumers.infrahub.observation import Expectation, Finding, Observation, Result, Status, observe
from ledger.destination import OutcomeUnknownError
from tests.unit.infrahub.answer_samples import SAMPLES, UPDATE, Sample

CODES = [None, "SOMETHING_NEW", *sorted({code for row in TABLE for code in row.codes or ()})]


def every_observation() -> Iterator[Observation]:
    """The whole product of what can be observed."""
    for event in Event:
        if event is not Event.ANSWERED:
            yield Observation(event=event)
    for status in Status:
        if status is not Status.OK:
            yield Observation(event=Event.ANSWERED, status=status)
    for shape, finding, code, result in itertools.product(Shape, Finding, CODES, Result):
        yield Observation(
            event=Event.ANSWERED, status=Status.OK, shape=shape, finding=finding, code=code, result=result
        )


@pytest.mark.rules("G5", "G6")
def test_g05_every_combination_of_facts_has_a_row_and_no_row_is_dead() -> None:
    reached = {classify(seen).name for seen in every_observation()}
    assert reached == {row.name for row in TABLE}
    assert len({row.name for row in TABLE}) == len(TABLE)


@pytest.mark.rules("G5", "P130", "P132", "P133")
def test_g05_only_the_destinations_own_not_found_for_the_recorded_id_proves_unwritten() -> None:
    proofs = [row for row in TABLE if row.verdict is Verdict.UNWRITTEN]
    assert {finding for row in proofs for finding in row.findings or ()} == {
        Finding.STALE_ID,
        Finding.STALE_ID_OTHER_KIND,
    }
    for seen in every_observation():
        if classify(seen).verdict is Verdict.UNWRITTEN:
            assert seen.shape is Shape.ERRORS
            assert seen.finding in (Finding.STALE_ID, Finding.STALE_ID_OTHER_KIND)


@pytest.mark.rules("G6")
def test_g06_only_ok_with_the_node_id_is_applied() -> None:
    for seen in every_observation():
        if classify(seen).verdict is Verdict.APPLIED:
            assert (seen.status, seen.shape, seen.result) == (Status.OK, Shape.DATA, Result.DONE)


@pytest.mark.rules("G5", "G11")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_g05_each_row_names_an_error_of_its_own_family_and_a_next_action(row: Row) -> None:
    assert row.next_action
    if row.verdict in (Verdict.UNKNOWN, Verdict.READ_BACK):
        assert row.error is not None
        assert issubclass(row.error, OutcomeUnknownError)
        assert row.error is not OutcomeUnknownError
    else:
        assert row.error is None


@pytest.mark.rules("G5", "G6", "P128", "P130")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_g05_each_row_is_reached_by_whole_answers(row: Row) -> None:
    samples = [sample for sample in SAMPLES if sample.row == row.name]
    assert samples, f"no sample answer for row {row.name!r}"
    for sample in samples:
        assert classify(observed(sample)).name == row.name, sample


def observed(sample: Sample) -> Observation:
    return observe(sample.exchange, read_answer(sample.exchange), sample.expected)


@pytest.mark.rules("P39", "P133", "G5")
@pytest.mark.parametrize(
    "change",
    [
        {"code": "UNDEFINED_ERROR"},
        {"code": None},
        {"http_status": 422},
        {"http_status": None},
        {"http_status": "404"},
        {"path": ["SomethingElse"]},
        {"path": []},
        {"path": None},
        {"identifier": "another-id"},
        {"identifier": None},
        {"status": 404},
        {"status": 500},
        {"data": {"LabSiteUpsert": {"ok": True, "object": {"id": "id-1"}}}},
        {"second": True},
    ],
    ids=str,
)
def test_g05_a_stale_id_needs_every_half_of_its_proof_in_one_error(change: dict[str, object]) -> None:
    assert classify(_not_found({})).verdict is Verdict.UNWRITTEN
    assert classify(_not_found(change)).verdict is Verdict.UNKNOWN


@pytest.mark.rules("P39", "G5")
def test_g05_code_and_status_in_two_different_errors_prove_nothing() -> None:
    halves = [
        {"message": "a", "path": ["LabSiteUpsert"], "extensions": {"code": "NODE_NOT_FOUND", "http_status": 500}},
        {"message": "b", "path": ["LabSiteUpsert"], "extensions": {"code": "UNDEFINED_ERROR", "http_status": 404}},
    ]
    for half in halves:
        half["extensions"]["data"] = {"identifier": "id-1"}  # type: ignore[index]  # the literal above is a mapping
    seen = observe(_answered({"data": {"LabSiteUpsert": None}, "errors": halves}), _read(halves), UPDATE)
    assert classify(seen).verdict is Verdict.UNKNOWN


@pytest.mark.rules("P133", "G5")
def test_g05_a_create_is_never_proven_unwritten_by_an_answer() -> None:
    create = Expectation(field="LabSiteUpsert", action="create", node_id="id-1")
    exchange = _answered(_not_found_document({}))
    assert classify(observe(exchange, read_answer(exchange), create)).verdict is Verdict.UNKNOWN


@pytest.mark.rules("G5")
def test_g05_sent_is_false_only_where_no_byte_left() -> None:
    assert {event for event in Event if not Exchange(event).sent} == NEVER_SENT
    assert Exchange(Event.ANSWERED, status=429, headers={"x-infrahub-admission": "shed"}).sent


def _answered(document: object, status: int = 200) -> Exchange:
    import json

    return Exchange(Event.ANSWERED, status=status, body=json.dumps(document).encode())


def _read(errors: object) -> Answer:
    return read_answer(_answered({"data": {"LabSiteUpsert": None}, "errors": errors}))


def _not_found(change: dict[str, object]) -> Observation:
    status = change.get("status", 200)
    assert isinstance(status, int)
    exchange = _answered(_not_found_document(change), status)
    return observe(exchange, read_answer(exchange), UPDATE)


def _not_found_document(change: dict[str, object]) -> dict[str, object]:
    error = {
        "message": "Unable to find the node id-1 / LabSite in the database.",
        "path": change.get("path", ["LabSiteUpsert"]),
        "extensions": {
            "code": change.get("code", "NODE_NOT_FOUND"),
            "http_status": change.get("http_status", 404),
            "data": {"node_kind": "LabSite", "identifier": change.get("identifier", "id-1")},
        },
    }
    errors = [error, {"message": "and one more thing"}] if change.get("second") else [error]
    return {"data": change.get("data", {"LabSiteUpsert": None}), "errors": errors}


@pytest.mark.rules("G11")
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_g11_while_planning_nobody_is_told_to_resume_a_run_that_does_not_exist(row: Row) -> None:
    advice = advice_while_planning(row)
    assert advice
    assert "resume" not in advice


@pytest.mark.rules("G5", "G11")
@pytest.mark.parametrize("row", [row for row in TABLE if row.next_action != "nothing"], ids=lambda row: row.name)
def test_g11_every_advice_ends_in_this_run_or_in_another_plan(row: Row) -> None:
    """And the writer repeats by itself only where the advice is to go on with the run."""
    assert row.is_final is ("resume the run" not in row.next_action)
    assert "resume the run" in row.next_action or "fresh plan" in row.next_action


@pytest.mark.rules("G11")
def test_g11_who_cannot_reach_the_holder_of_a_key_is_told_where_it_is() -> None:
    """A fresh plan reads the same branch and does not see that object either."""
    told = {row.name: row.next_action for row in TABLE if row.name in ("key elsewhere", "uniqueness")}
    assert len(told) == 2
    for words in told.values():
        assert all(word in words for word in ("main", "rebase", "sibling kind", "fresh plan"))
