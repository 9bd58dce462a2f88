"""An installation may want a reason with each order: a bank's change number (G11)."""

from __future__ import annotations

import pytest

from ledger.cli.main import main
from ledger.exit_codes import ExitCode


@pytest.mark.rules("G11")
@pytest.mark.parametrize("command", ["commit", "apply", "resume", "stop"])
@pytest.mark.parametrize("reason", [[], ["--reason", " "]], ids=["none", "a blank"])
def test_g11_an_order_without_the_reason_that_is_wanted_is_refused_before_anything_else(
    command: str, reason: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("APPLY_LEDGER_REQUIRE_REASON", "true")
    assert main([command, "sync/20261129T1900-0a1b2c3d", *reason]) == ExitCode.USAGE
    told = capfd.readouterr().err
    assert "ReasonRequiredError" in told
    assert "--reason" in told
