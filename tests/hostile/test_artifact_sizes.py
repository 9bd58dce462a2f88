"""Hostile plans that are large, or claim to be: refused in a process that may use little memory and little time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.artifact_corpus_files import MIB, SIZES

MORE_MEMORY = 256 * MIB
"""Bytes. The largest file here has 64 MiB, and some hold five million values in 15."""


@pytest.mark.rules("A12", "A92", "G11")
def test_ff18_large_hostile_plans_are_refused_in_little_memory(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.artifact_sizes", str(tmp_path), str(MORE_MEMORY)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [found["name"] for found in told] == [case.name for case in SIZES]
    for found, case in zip(told, SIZES, strict=True):
        assert found["violations"] == []
        assert found["refusal"] == case.refusal, found
        assert case.finding in found["findings"], found
