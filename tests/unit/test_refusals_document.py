"""Each refusal is documented, and says what is checked in a sentence of its own (G11)."""

from __future__ import annotations

import pytest

from ledger.exit_codes import ExitCode
from tests.support.next_actions import advice_of, by_hand, next_actions
from tests.support.refusals_document import PAGE, first_sentence, refusals, render, shown_refusals


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


@pytest.mark.rules("G11")
def test_g11_every_refusal_has_a_sentence() -> None:
    assert [item.__name__ for item in refusals() if not first_sentence(item)] == []


@pytest.mark.rules("G11")
def test_g11_every_refusal_says_what_to_do_next() -> None:
    advice = next_actions()
    assert [item.__name__ for item in shown_refusals(advice) if not advice_of(item, advice)] == []


def test_what_is_written_by_hand_is_of_a_class_that_there_is() -> None:
    assert set(by_hand()) <= {item.__name__ for item in refusals()}


def test_no_refusal_has_the_code_of_a_missing_approval_because_nothing_asks_for_one() -> None:
    assert [item.__name__ for item in refusals() if item.exit_code is ExitCode.APPROVAL_MISSING] == []
