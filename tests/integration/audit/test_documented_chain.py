"""The page about the chain has a program that checks it without us; it is run as it stands there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit.export.writing import export_binding
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.store.ledger import Ledger

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
STRANGER = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))
PAGE = Path(__file__).resolve().parents[3] / "docs" / "chain.md"
Change = Callable[[list[dict[str, Any]]], object]


@pytest.fixture
async def exported(told_dsns: dict[str, str], tmp_path: Path) -> Path:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        await publish_checkpoint(ledger, (await ledger.bindings())[0], [KEY])
        await export_binding(ledger, (await ledger.bindings())[0], tmp_path / "export", program="tests")
    [program] = re.findall(r"```python check-log\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "check_log.py").write_text(program, encoding="utf-8")
    shutil.copy(tmp_path / "export" / "checkpoint.note", tmp_path / "mailed.note")
    return tmp_path


def _checked(folder: Path, key: SigningKey = KEY) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "check_log.py", "export/events.ndjson", "mailed.note", key.public.text()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.rules("G8")
async def test_g08_somebody_elses_program_confirms_the_log_and_the_signature(exported: Path) -> None:
    events = len((exported / "export" / "events.ndjson").read_bytes().splitlines())
    done = _checked(exported)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{events} events hold; tests signed the first {events - 1}\n"
    assert "InvalidSignature" in _checked(exported, STRANGER).stderr


def _another_actor(events: list[dict[str, Any]]) -> None:
    next(event for event in events if "by" in event["body"])["body"]["by"] = "somebody else"


def _another_actor_before_the_true_bytes(events: list[dict[str, Any]]) -> None:
    event = next(event for event in events if "by" in event["body"])
    event["body_text"] = json.dumps(event["body"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    event["body"]["by"] = "somebody else"


@pytest.mark.rules("G8")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (_another_actor, "is not what it was"),
        (_another_actor_before_the_true_bytes, "was not recorded in the one spelling"),
        (lambda events: events.pop(3), "event 5 follows 3"),
        (lambda events: events.__delitem__(slice(-2, None)), "the checkpoint covers"),
        (lambda events: events[2].update(recorded_at="2026-01-01T00:00:00.000000+00:00"), "event 3 is not what it was"),
        (lambda events: events[4].update(prev_hash="00" * 32), "event 5 does not follow the one before it"),
    ],
    ids=["actor", "actor-beside", "missing", "cut", "time", "link"],
)
async def test_g08_somebody_elses_program_finds_what_was_changed(exported: Path, change: Change, told: str) -> None:
    path = exported / "export" / "events.ndjson"
    events = [json.loads(line) for line in path.read_bytes().splitlines()]
    change(events)
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    done = _checked(exported)
    assert done.returncode == 1
    assert told in done.stderr
