"""The lines that ``make mutants`` takes out are where it looks for them."""

from __future__ import annotations

import pytest

from tests.support.load_bearing import LINES, ROOT, LoadBearing


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.guards)
def test_a_load_bearing_line_stands_once_in_its_file_and_its_test_exists(line: LoadBearing) -> None:
    assert (ROOT / line.file).read_text("utf-8").count(line.line) == 1
    assert (ROOT / line.test.partition("::")[0]).exists()
