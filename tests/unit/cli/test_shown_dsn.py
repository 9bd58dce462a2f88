"""The address of a ledger is named by commands and reports, never with what may be a password (G12)."""

from __future__ import annotations

import pytest

from ledger.cli.verification_record import shown_dsn

SECRET = "canary-77aa"  # looked for in what is shown


@pytest.mark.rules("G12")
@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@db.example:5432/ledger",
        f"postgresql://me:{SECRET}@[::1]:5432/ledger?sslmode=verify-full&password={SECRET}",
        f"postgresql://me:x/{SECRET}@db.example/ledger",
        f"postgresql://me:12/{SECRET}@db.example/ledger",
        f"postgresql://me:x?{SECRET}@db.example/ledger",
        f"postgresql://me:x#{SECRET}@db.example/ledger",
        f"postgresql://me:{SECRET}/x@db.example/ledger",
        f"postgresql://me:{SECRET}@[bad/ledger",
        f"host=db.example user=me password={SECRET}",
        f"postgresql://{SECRET}:{SECRET}",
    ],
)
def test_g12_no_password_is_shown_however_it_is_written(dsn: str) -> None:
    assert SECRET not in shown_dsn(dsn)


def test_a_usual_address_is_shown_whole() -> None:
    shown = shown_dsn(f"postgresql://me:{SECRET}@db.example:5432/ledger?sslmode=require&application_name=x")
    assert shown == "postgresql://me@db.example:5432/ledger?sslmode=require"
    assert shown_dsn(f"postgresql://me:{SECRET}@[::1]:5432/l") == "postgresql://me@[::1]:5432/l"
