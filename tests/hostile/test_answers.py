"""Hostile answers, many of them: every verdict is the rules', no other exception comes out, and no secret.

The cases are drawn from a source of chance. Hypothesis is one, which makes a failing case small; the seeded one is the
runner's (``python -m tests.hostile.answers``), of which a fixed part runs here.
"""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.hostile.answers.documents import nested
from tests.hostile.answers.generate import in_use, stale, whole
from tests.hostile.answers.judged import Judged
from tests.hostile.answers.leaks import disguised, echoes, leaks
from tests.hostile.answers.oracle import may_be_said
from tests.hostile.answers.served import Served
from tests.hostile.answers.trials import OnOneLoop
from tests.hostile.answers.writes import FORMS, TOKEN

chance = st.randoms(use_true_random=False)
drawn = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], derandomize=True
)


def right(judged: Judged) -> None:
    assert not judged.violation, f"{judged.name}: {judged.violation}"


@pytest.mark.rules("G5", "G6", "G12", "P127", "P128", "P130", "P131", "P132", "P133", "P134")
@given(random=chance)
@settings(drawn, max_examples=400)
def test_g05_g06_a_hostile_answer_to_a_write_gets_the_verdict_of_the_rules(hostile: OnOneLoop, random: Random) -> None:
    right(hostile.judge(hostile.trials.writes.drawn(random)))


@pytest.mark.rules("G12", "P79", "P80", "P81", "P82", "P83")
@given(random=chance)
@settings(drawn, max_examples=150)
def test_ff20_a_hostile_answer_to_a_look_up_never_binds_a_wrong_peer(hostile: OnOneLoop, random: Random) -> None:
    right(hostile.judge(hostile.trials.lookups.drawn(random)))


@pytest.mark.rules("G12", "C37")
@given(random=chance)
@settings(drawn, max_examples=150)
def test_ff01_hostile_pages_are_read_completely_or_refused(hostile: OnOneLoop, random: Random) -> None:
    right(hostile.judge(hostile.trials.pages.drawn(random)))


@pytest.mark.rules("G11", "G12", "P18")
@given(random=chance)
@settings(drawn, max_examples=60)
def test_g11_a_hostile_schema_is_a_named_refusal(hostile: OnOneLoop, random: Random) -> None:
    right(hostile.judge(hostile.trials.schemas.drawn(random)))


@pytest.mark.rules("G5", "G6", "G12")
@pytest.mark.parametrize("part", range(4))
def test_g05_g06_a_fixed_part_of_the_campaign(hostile: OnOneLoop, part: int) -> None:
    said = set()
    for number in range(part * 500, part * 500 + 500):
        judged = hostile.judge(hostile.trials.drawn(Random(f"0:{number}")))
        right(judged)
        said.add(judged.said)
    assert {"applied", "unwritten", "unknown", "peer bound", "pages read"} <= said


@pytest.mark.rules("G5", "P133")
def test_g05_a_right_answer_of_each_kind_is_believed(hostile: OnOneLoop) -> None:
    """The oracle and the generator can say all four things; otherwise everything above would prove little."""
    update, create, own = (form for form, _ in FORMS)
    confirmed = {"data": {update.field: {"ok": True, "object": {"id": update.node_id}}}}
    refused = {"data": {update.field: None}, "errors": [stale(update, update.node_id or "")]}
    used = {"data": {own.field: None}, "errors": [in_use(own, own.node_id or "")]}
    assert may_be_said(update, _served(confirmed), TOKEN) == "applied"
    assert may_be_said(update, _served(refused), TOKEN) == "unwritten"
    assert may_be_said(create, _served(refused), TOKEN) == "unknown"
    assert may_be_said(own, _served(used), TOKEN) == "read back"


def test_the_search_for_leaks_finds_every_disguise() -> None:
    for disguise in disguised(TOKEN):
        assert leaks(f"<{disguise}>", TOKEN)
    assert echoes(f'{{"a": "{TOKEN}"}}'.encode(), TOKEN)
    assert not leaks("an ordinary answer with 18ec9baa-2624-4515-e315-189fdf3551df in it", TOKEN)


@pytest.mark.rules("G5", "G12")
@pytest.mark.parametrize("field", ["message", "code", "path", "http_status", "data", "locations"])
@pytest.mark.parametrize("number", range(len(disguised(TOKEN))))
def test_g12_the_token_in_any_part_of_an_error_reaches_no_reader(hostile: OnOneLoop, field: str, number: int) -> None:
    for form, operation in FORMS:
        error = {"message": "no", "path": [form.field], "extensions": {"code": "UNDEFINED_ERROR", "http_status": 422}}
        place = error["extensions"] if field in ("code", "http_status", "data") else error
        assert isinstance(place, dict)
        place[field] = disguised(TOKEN)[number]
        for errors in ([error], [disguised(TOKEN)[number]], disguised(TOKEN)[number]):
            answer = _served({"data": None, "errors": errors})
            right(hostile.judge(hostile.trials.writes.judged(form, operation, answer, answer)))


@pytest.mark.rules("G5")
@pytest.mark.parametrize("levels", [90, 98, 99, 100, 101, 150, 400, 900, 3000])
def test_g05_depth_is_no_way_to_a_crash(hostile: OnOneLoop, levels: int) -> None:
    deep = nested(levels) if levels < 900 else None
    text = b'{"data": ' + b"[" * levels + b"]" * levels + b"}"
    for form, operation in FORMS:
        for errors in ([{"message": deep}], [deep], deep):
            answer = _served({"data": {form.field: deep}, "errors": errors}) if deep else whole("deep", text)
            right(hostile.judge(hostile.trials.writes.judged(form, operation, answer, answer)))


def _served(document: object) -> Served:
    return whole("made", json.dumps(document).encode())
