"""What support asks for first, and how much is logged."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
import structlog

from ledger.cli.main import main
from ledger.cli.session import Invocation
from ledger.errors import ConfigurationError
from ledger.exit_codes import ExitCode
from ledger.store.sql_files import migrations


def test_the_version_is_that_of_the_package_and_names_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == ExitCode.DONE
    shown = capsys.readouterr().out
    assert shown.startswith(f"apply-ledger {version('apply-ledger')} (schema {migrations()[-1].version}, Python 3.")


def _logged(capsys: pytest.CaptureFixture[str], *, verbose: bool = False) -> list[str]:
    """The levels that come through."""
    assert Invocation(config=None, verbose=verbose).settings is not None
    log = structlog.get_logger("a test")
    for level in ("debug", "info", "warning", "error"):
        getattr(log, level)("something happened", level_asked_for=level)
    return [json.loads(line)["level"] for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("", ["warning", "error"]),
        ("error", ["error"]),
        ("warning", ["warning", "error"]),
        ("info", ["info", "warning", "error"]),
    ],
)
def test_the_level_of_the_log_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str, shown: list[str]
) -> None:
    monkeypatch.setenv("APPLY_LEDGER_LOG_LEVEL", level)
    assert _logged(capsys) == shown


def test_verbose_shows_more_than_the_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APPLY_LEDGER_LOG_LEVEL", "error")
    assert _logged(capsys, verbose=True) == ["info", "warning", "error"]


def test_another_level_is_refused_with_those_that_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_LEDGER_LOG_LEVEL", "chatty")
    with pytest.raises(ConfigurationError, match=r"log_level.*'error', 'warning' or 'info'"):
        _ = Invocation(config=None, verbose=False).settings
