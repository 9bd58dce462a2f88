"""An option that a command would ignore is refused: whoever gave it believes that it was looked at (G11)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("arguments", "unused"),
    [
        (["verify", "--from-kafka", "--checkpoint", "head.note"], "--checkpoint"),
        (["verify", "--from-kafka", "--proof", "proof.json"], "--proof"),
        (["verify", "--proof", "proof.json", "--export", "folder"], "--export"),
        (["verify", "--proof", "proof.json", "--checkpoint", "head.note"], "--checkpoint"),
        (["verify", "--export", "folder", "--resume-from", "head.note"], "--resume-from"),
        (["verify", "--against", "folder", "--checkpoint", "head.note"], "--checkpoint"),
        (["verify", "--against", "folder", "--key", "k"], "--key"),
        (["verify", "--export", "folder", "--url", "https://infrahub.example"], "--url"),
        (["replay", "--onto", "http://sandbox.example", "--to", "2026-11-29"], "--to"),
        (["replay", "--onto", "http://sandbox.example", "--run", "run-1"], "--run"),
        (["replay", "--onto", "http://sandbox.example", "--state"], "--state"),
        (["replay", "--record-branch", "main"], "--record-branch"),
        (["replay", "--at", "7"], "--at"),
    ],
)
def test_g11_an_option_that_would_be_ignored_is_refused(tmp_path: Path, arguments: list[str], unused: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ledger.cli.main", *arguments],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith("APPLY_LEDGER_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64, done.stderr
    assert unused in done.stderr
    assert "Traceback" not in done.stderr
