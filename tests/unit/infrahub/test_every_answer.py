"""The table over every kind of answer: one row decides each, each row decides some, and each verdict is the rules'."""

from __future__ import annotations

from collections import Counter

import pytest

from consumers.infrahub.answers import read_answer
from consumers.infrahub.classification import TABLE, Row, Verdict, classify
from consumers.infrahub.exchange import Event
from consumers.infrahub.observation import Observation, observe
from tests.hostile.answers.oracle import Form, may_be_said
from tests.hostile.answers.served import Served
from tests.support.answer_cells import Cell, cells

_SAID = {
    Verdict.APPLIED: "applied",
    Verdict.UNWRITTEN: "unwritten",
    Verdict.UNKNOWN: "unknown",
    Verdict.READ_BACK: "read back",
}


@pytest.fixture(scope="module")
def decided() -> list[tuple[Cell, Row]]:
    return [(cell, classify(_observed(cell))) for cell in cells()]


def _observed(cell: Cell) -> Observation:
    return observe(cell.exchange, read_answer(cell.exchange), cell.expected)


@pytest.mark.rules("G5", "G6", "P127", "P128", "P130")
def test_g05_every_row_decides_some_kind_of_answer(decided: list[tuple[Cell, Row]]) -> None:
    reached = Counter(row.name for _, row in decided)
    assert set(reached) == {row.name for row in TABLE}
    assert sum(reached.values()) == len(decided) > 10_000


@pytest.mark.rules("G5", "G6", "P131", "P132", "P133", "P39")
def test_g05_every_verdict_is_the_one_of_the_rules(decided: list[tuple[Cell, Row]]) -> None:
    wrong = []
    for cell, row in decided:
        if cell.expected is None:
            right = row.verdict is not Verdict.UNWRITTEN and row.verdict is not Verdict.APPLIED
        else:
            form = Form(cell.expected.field, cell.expected.action, cell.expected.node_id)
            right = _SAID[row.verdict] == may_be_said(form, _as_served(cell), token="no such token")
        if not right:
            wrong.append((cell.form, cell.exchange.status, cell.exchange.body[:300], row.name))
    assert wrong == []


@pytest.mark.rules("G5")
def test_g05_the_order_of_the_table_matters_only_where_a_row_is_the_rest_of_another(
    decided: list[tuple[Cell, Row]],
) -> None:
    """Where several rows match, none of those behind the first claims more than the first."""
    claims = {Verdict.UNWRITTEN, Verdict.APPLIED}
    for cell, row in decided:
        seen = _observed(cell)
        behind = [other for other in TABLE if other is not row and other.matches(seen)]
        assert not any(other.verdict in claims for other in behind), (cell, row.name)


def _as_served(cell: Cell) -> Served:
    exchange = cell.exchange
    whole = exchange.event is Event.ANSWERED and exchange.status is not None
    return Served("cell", status=exchange.status or 0, truth=exchange.body if whole else None)
