"""The page of the table of answers says what the program does."""

from __future__ import annotations

import pytest

from consumers.infrahub.classification import TABLE
from tests.support.classification_document import PAGE, render


@pytest.mark.rules("G5", "G6")
def test_g05_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_every_line_of_the_table_is_a_line_of_the_page() -> None:
    shown = [line.split(" | ")[0].removeprefix("| ") for line in render().splitlines() if line.startswith("| ")]
    assert shown[2:] == [row.name for row in TABLE]
