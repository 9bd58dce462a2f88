"""The page about the contract says what the cases, the recording and the list of differences say."""

from __future__ import annotations

from tests.support.contract_document import PAGE, render


def test_the_page_is_made_from_the_cases_as_they_are() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"
