"""The table of exit codes is in the README and in the help, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumers.errors import LeaseLostError
from ledger.exit_codes import MEANING, ExitCode
from ledger.store.errors import FencedWriterError, LeaseHeldError, RelayFencedError, RelayHeldError

README = Path(__file__).resolve().parents[2] / "README.md"


def test_every_code_has_a_meaning() -> None:
    assert set(MEANING) == set(ExitCode)


@pytest.mark.parametrize("code", list(ExitCode))
def test_the_readme_has_every_code(code: ExitCode) -> None:
    meaning = MEANING[code].replace("plan --detailed-exitcode", "`plan --detailed-exitcode`")
    assert f"| {code.value} | {meaning} |" in README.read_text(encoding="utf-8")


def test_whoever_was_taken_over_ends_with_one_code_wherever_it_is_noticed() -> None:
    """By the clock of the process, by the database before or at an append, or by the relay's cursor."""
    noticed = (LeaseLostError, LeaseHeldError, FencedWriterError, RelayHeldError, RelayFencedError)
    assert {error.exit_code for error in noticed} == {ExitCode.BUSY}
