"""Hostile plans through the program itself: `show` and `apply` as processes, a sandbox that counts what reaches it."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger.exit_codes import ExitCode
from tests.hostile.artifact_corpus import CORPUS
from tests.hostile.artifact_judge import CANARY, faults_of_text
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration

SHOWN = {
    "an escaped U+0000": ExitCode.REFUSED,
    "100 000 lists": ExitCode.REFUSED,
    "a manifest in UTF-16": ExitCode.REFUSED,
    "a format of tomorrow": ExitCode.REFUSED,
    "an address with a password": ExitCode.REFUSED,
    "an unknown action": ExitCode.REFUSED,
    "a pipe in the place of plan/operations.jsonl": ExitCode.REFUSED,
    "no plan at all": ExitCode.REFUSED,
    "a line twice": ExitCode.REFUSED,
    # What only the destination's schema or the snapshots can tell, a review of files does not know.
    "a kind that nobody has": ExitCode.DONE,
    "a password": ExitCode.DONE,
    "half a snapshot": ExitCode.DONE,
}
"""The most different cases of the corpus, and what `show` says of each; `apply` refuses all of them."""


def _spoiled(cli: CommandLine, planned: str, number: int, name: str) -> tuple[str, str]:
    """A copy of a run under another id, spoiled; and the checksum that its maker would have reviewed."""
    source = cli.folder / "runs" / planned
    run_dir = source.with_name(f"20260101T0000-{number:08x}")
    shutil.copytree(source, run_dir)
    manifest = run_dir / "plan" / "manifest.json"
    document = json.loads(manifest.read_bytes()) | {"run_id": run_dir.name}
    manifest.write_bytes(json.dumps(document, sort_keys=True, separators=(",", ":")).encode())
    CORPUS[name].spoil(run_dir)
    return f"{run_dir.parent.name}/{run_dir.name}", _checksum(manifest, document["plan_checksum"])


def _checksum(manifest: Path, otherwise: str) -> str:
    try:
        return str(json.loads(manifest.read_bytes())["plan_checksum"])
    except (OSError, ValueError, KeyError):
        return otherwise


def _spoiled_runs(cli: CommandLine) -> list[tuple[str, str]]:
    cli.source({"name": "a"}, {"name": "b"})
    planned = cli.plan()["run"]
    return [_spoiled(cli, planned, number, name) for number, name in enumerate(SHOWN)]


def _require_good_words(answers: dict[str, tuple[int, str]]) -> None:
    for name, (_, text) in answers.items():
        assert list(faults_of_text(text)) == [], name
        assert CANARY not in text


@pytest.mark.timeout(300)
@pytest.mark.rules("A85", "C39", "G11", "G12")
def test_ff37_hostile_plans_are_shown_for_what_they_are(cli: CommandLine) -> None:
    def shown(run: tuple[str, str]) -> tuple[int, str]:
        done = cli.run("show", run[0], "--detail")
        return done.returncode, done.stdout + done.stderr

    with ThreadPoolExecutor(2) as pool:  # for two processors
        answers = dict(zip(SHOWN, pool.map(shown, _spoiled_runs(cli)), strict=True))
    assert {name: code for name, (code, _) in answers.items()} == SHOWN
    _require_good_words(answers)


@pytest.mark.timeout(300)
@pytest.mark.rules("P65", "P105", "P119", "G11", "G12")
def test_ff37_hostile_plans_are_refused_by_the_program_and_nothing_is_sent(cli: CommandLine) -> None:
    def applied(run: tuple[str, str]) -> tuple[int, str]:
        done = cli.run("apply", run[0], "--expected-checksum", run[1], "--config-file", "config.yml")
        return done.returncode, done.stdout + done.stderr

    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(SHOWN, pool.map(applied, _spoiled_runs(cli)), strict=True))
    assert {name: code for name, (code, _) in answers.items()} == dict.fromkeys(SHOWN, ExitCode.REFUSED)
    _require_good_words(answers)
    assert cli.mutations() == 0
