"""What a report of `verify` says of itself: when, where, with what; and never a secret."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretStr

from ledger.audit import Level, LevelReport, VerifyReport
from ledger.audit.signed_note import SigningKey
from ledger.cli.settings import Settings
from ledger.cli.verification_record import export_subject, ledger_subject, recorded, shown_dsn
from ledger.cli.verify_report import print_report

KEY = SigningKey("audit", Ed25519PrivateKey.from_private_bytes(bytes(range(32)))).public


@pytest.mark.rules("G12")
@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://auditor:hunter2@db.example:5433/ledger", "postgresql://auditor@db.example:5433/ledger"),
        (
            "postgresql://db.example/ledger?password=hunter2&sslmode=require",
            "postgresql://db.example/ledger?sslmode=require",
        ),
        (
            "postgresql://a:hunter2@/ledger?host=%2Fvar%2Frun&passfile=hunter2",
            "postgresql://a@/ledger?host=%2Fvar%2Frun",
        ),
        ("postgresql://a:hun%40ter2@h/l", "postgresql://a@h/l"),
    ],
)
def test_g12_a_ledger_is_named_without_its_password(dsn: str, shown: str) -> None:
    assert shown_dsn(dsn) == shown
    assert shown in ledger_subject(Settings(dsn=SecretStr(dsn)))


def test_an_export_is_named_by_the_digest_of_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b"{}")
    assert hashlib.sha256(b"{}").hexdigest() in export_subject(tmp_path)
    assert "unknown" in export_subject(tmp_path / "nowhere")


@pytest.mark.rules("G8", "G11")
def test_g08_a_report_has_its_reasons_and_its_circumstances_where_its_table_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    level = LevelReport(Level.CHECKPOINTS, checked=1)
    level.add("CheckpointMismatch", checked="head.note", expected="a", found="b", position=9, after=4)
    report = VerifyReport("http://infrahub.example", "main", 9, bytes(32), 9, (level,))
    record = recorded("the embedded ledger in /data", [KEY], {"head.note": b"signed"})
    print_report(report, record)
    shown = capsys.readouterr()
    assert "first break: at or before event 9, where a signed head differs (behind event 4" in shown.out
    for told in (
        "CheckpointMismatch: head.note: expected a, found b",
        record.document()["program"],
        record.document()["host"],
        "the embedded ledger in /data",
        f"audit+{KEY.key_hash.hex()}",
        f"head.note, sha256 {hashlib.sha256(b'signed').hexdigest()}",
        f"{record.at:%Y-%m-%dT%H:%M:%S}Z",
    ):
        assert told in shown.out
    assert shown.err == ""
