"""What a proof shows is told first: written, not written, or nobody knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.audit.proof_check import CheckedProof
from ledger.cli import offline_verification
from ledger.cli.output import OutputForm
from ledger.errors import Finding
from ledger.exit_codes import ExitCode

FACTS: dict[str, Any] = {
    "run_id": "run-1",
    "source": "netbox",
    "actor": "ada",
    "reason": "",
    "operation": {"operation_id": "op_1", "action": "update", "kind": "BuiltinTag", "identity": {"name": "red"}},
    "resumptions": [{"position": 4, "by": "eve", "reason": "looked"}],
    "signed_by": ["audit"],
    "signed_at": "2026-11-30",
    "checkpoint_position": 9,
    "not_proven": [],
}


def _outcome(kind: str, **body: Any) -> dict[str, Any]:
    return {"position": 5, "kind": f"operation.{kind}", "attempt": 1, "recorded_at": "2026-11-30", **body}


def _shown(monkeypatch: pytest.MonkeyPatch, path: Path, checked: CheckedProof) -> int:
    path.write_text(json.dumps({}))
    monkeypatch.setattr("ledger.audit.proof_check.check_proof", lambda _data, _keys: checked)
    return offline_verification.show_proof(path, [], OutputForm.TABLE)


@pytest.mark.rules("G5")
@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([_outcome("applied", node_id="n-1")], "the operation was written"),
        ([_outcome("unknown"), _outcome("applied", node_id="n-1")], "the operation was written"),
        ([_outcome("failed", error="PeerNotFoundError", message="no such peer")], "the operation wrote nothing"),
        ([_outcome("unknown", error="ReadTimeout"), _outcome("failed")], "may have been written: an answer was lost"),
        ([_outcome("skipped")], "never sent"),
    ],
)
def test_g05_a_proof_says_what_came_of_the_operation(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    outcomes: list[dict[str, Any]],
    told: str,
) -> None:
    code = _shown(monkeypatch, tmp_path / "proof.json", CheckedProof(facts=FACTS | {"outcomes": outcomes}))
    shown = capsys.readouterr().out
    assert code == ExitCode.DONE
    assert told in shown.splitlines()[0]
    assert "had go on by eve (looked)" in shown
    for outcome in outcomes:
        assert all(str(value) in shown for name, value in outcome.items() if name in ("node_id", "error", "message"))


def test_a_proof_that_does_not_hold_has_its_reasons_with_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = Finding(name="ProofEventChanged", checked="c", expected="e", found="f", next_action="n")
    assert _shown(monkeypatch, tmp_path / "proof.json", CheckedProof(findings=[finding])) == ExitCode.TAMPERED
    assert "ProofEventChanged" in capsys.readouterr().out
