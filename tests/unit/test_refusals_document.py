"""Each refusal is documented, and says what is checked in a sentence of its own (G11)."""

from __future__ import annotations

import pytest

from tests.support.refusals_document import PAGE, first_sentence, refusals, render


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


@pytest.mark.rules("G11")
def test_g11_every_refusal_has_a_sentence() -> None:
    assert [item.__name__ for item in refusals() if not first_sentence(item)] == []
