"""The table of exit codes is in the README and in the help, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.exit_codes import MEANING, ExitCode

README = Path(__file__).resolve().parents[2] / "README.md"


def test_every_code_has_a_meaning() -> None:
    assert set(MEANING) == set(ExitCode)


@pytest.mark.parametrize("code", list(ExitCode))
def test_the_readme_has_every_code(code: ExitCode) -> None:
    meaning = MEANING[code].replace("plan --detailed-exitcode", "`plan --detailed-exitcode`")
    assert f"| {code.value} | {meaning} |" in README.read_text(encoding="utf-8")
