"""How a refusal stands on a terminal: every finding named, one next action where there is one."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ledger.cli.output import show_refusal
from ledger.errors import ApplyLedgerError, ConfigurationError, Finding, RefusalGroup


class SeveralError(RefusalGroup):
    """A group of findings."""


def finding(checked: str, found: str = "nothing") -> Finding:
    return Finding(name="RowError", checked=checked, expected="a value", found=found, next_action="correct the row")


def shown(error: ApplyLedgerError) -> list[str]:
    out = io.StringIO()
    show_refusal(error, console=Console(file=out, width=60, highlight=False, markup=False, soft_wrap=True))
    return out.getvalue().splitlines()


def group(*findings: Finding, next_action: str = "plan again") -> SeveralError:
    return SeveralError(checked="the rows", findings=findings, next_action=next_action)


@pytest.mark.rules("G11")
def test_g11_a_single_refusal_has_its_four_lines() -> None:
    error = ConfigurationError(checked="a", expected="b", found="c", next_action="d")
    assert shown(error) == ["ConfigurationError", "  checked  a", "  expected b", "  found    c", "  next     d"]


@pytest.mark.rules("G11")
def test_g11_what_is_to_be_done_after_one_finding_is_aligned_with_it_and_no_second_next() -> None:
    assert shown(group(finding("row 1")))[-2:] == ["  next     correct the row", "  then     plan again"]
    assert shown(group(finding("row 1"), next_action="correct the row"))[-1] == "  next     correct the row"


@pytest.mark.rules("G11")
def test_g11_findings_that_differ_only_in_what_was_checked_stand_together_and_all_are_named() -> None:
    rows = [f"row {number}" for number in range(1_200)]
    lines = shown(group(finding("other", "null"), *map(finding, rows)))
    assert lines[0] == "SeveralError: 1,201 findings"
    assert lines[1:3] == ["RowError", "  checked  other"]
    assert lines[6:8] == ["RowError (1,200 times)", "  checked  row 0"]
    assert [line.strip() for line in lines[8:-4]] == rows[1:]
    assert lines[-4:-2] == ["  expected a value", "  found    nothing"]
    assert lines[-2:] == ["  next     correct the row", "for all of it: plan again"]
