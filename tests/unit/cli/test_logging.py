"""The program's own log: a defect keeps its traceback, and no variable's value is shown with it."""

from __future__ import annotations

import io
import json
import sys

import pytest
import structlog

from ledger.cli.session import _set_up_logging

SECRET = "canary-9a41-token"


class _Screen(io.StringIO):
    """A standard error that is a terminal, or none."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def _fail_holding(token: str) -> None:
    headers = {"X-INFRAHUB-KEY": token}
    raise TypeError(f"a defect with {len(headers)} header")


def _logged(monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> str:
    screen = _Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    _set_up_logging("info")
    try:
        _fail_holding(SECRET)
    except TypeError:
        structlog.get_logger("test").exception("a writer ended")
    return screen.getvalue()


@pytest.mark.rules("G12", "P142")
@pytest.mark.parametrize("terminal", [True, False])
def test_g12_a_logged_defect_has_its_traceback_and_no_value_of_a_variable(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    text = _logged(monkeypatch, terminal=terminal)
    assert "Traceback (most recent call last)" in text
    assert "_fail_holding" in text
    assert "TypeError: a defect with 1 header" in text
    assert SECRET not in text


def test_a_log_that_is_no_terminal_is_one_json_document_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = _logged(monkeypatch, terminal=False).splitlines()
    assert json.loads(line)["event"] == "a writer ended"
