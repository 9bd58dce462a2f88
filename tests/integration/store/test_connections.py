"""What is looked at before anything is written: the server's settings, the schema, the DSN (G4, G12)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from ledger.errors import ConfigurationError
from ledger.store.connect import Limits, check_server
from ledger.store.errors import LedgerPermissionError, LedgerUnavailableError, UnsafeServerError
from ledger.store.ledger import Ledger
from ledger.store.migrate import migrate
from ledger.store.sql_files import query
from ledger.store.writer import Lease, WriterStore
from tests.support.postgres import PostgresServer
from tests.support.store import applied, claim, connection_to, open_writer

pytestmark = pytest.mark.integration


@pytest.mark.rules("G4", "G11")
async def test_g04_a_server_without_fsync_is_refused(ledger_dsns: dict[str, str]) -> None:
    for opening in (Ledger.open(ledger_dsns["writer"]), WriterStore.open(ledger_dsns["writer"])):
        with pytest.raises(UnsafeServerError) as refused:
            await opening
        assert refused.value.checked == "the server's setting fsync"
        assert refused.value.found == "off"


class Answers:
    """A server with settings of the test's choice, and the schema of this program."""

    def __init__(self, connection: Any, **settings: Any) -> None:
        self._connection = connection
        self._settings = {
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "server_encoding": "UTF8",
            "server_version": 150000,
        } | settings

    async def fetchrow(self, text: str) -> dict[str, Any]:
        assert text == query("server_settings")
        return self._settings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


@pytest.mark.parametrize(
    ("setting", "value", "allowed_in_tests"),
    [
        ("fsync", "off", True),
        ("full_page_writes", "off", True),
        ("synchronous_commit", "off", False),
        ("synchronous_commit", "local", False),
        ("server_version", 140012, False),
        ("server_encoding", "SQL_ASCII", False),
    ],
)
@pytest.mark.rules("G4")
async def test_g04_each_setting_that_can_lose_a_commit_is_refused_by_name(
    admin: Any, setting: str, value: Any, allowed_in_tests: bool
) -> None:
    await check_server(Answers(admin), allow_unsafe_fsync=False)
    with pytest.raises(UnsafeServerError) as refused:
        await check_server(Answers(admin, **{setting: value}), allow_unsafe_fsync=False)
    assert setting in refused.value.checked
    if allowed_in_tests:
        await check_server(Answers(admin, **{setting: value}), allow_unsafe_fsync=True)
    else:
        with pytest.raises(UnsafeServerError):
            await check_server(Answers(admin, **{setting: value}), allow_unsafe_fsync=True)


@pytest.mark.rules("G1", "G11")
async def test_g01_a_database_that_cannot_hold_every_text_is_refused_by_name(
    postgres_server: PostgresServer, admin: Any
) -> None:
    name = f"t_{uuid.uuid4().hex[:16]}"
    await admin.execute(f"create database {name} encoding 'LATIN1' locale 'C' template template0")
    try:
        async with connection_to(postgres_server.dsn(name)) as connection:
            with pytest.raises(UnsafeServerError) as refused:
                await check_server(connection, allow_unsafe_fsync=True)
    finally:
        postgres_server.drop_database(name)
    assert (refused.value.checked, refused.value.found) == ("the server's setting server_encoding", "LATIN1")
    assert "encoding 'UTF8'" in refused.value.next_action


@pytest.mark.rules("G4")
async def test_g04_an_append_is_durable_whatever_the_session_asked_for(
    ledger_dsns: dict[str, str], lease: Lease
) -> None:
    async with connection_to(ledger_dsns["writer"]) as connection:
        for asked, expected in (("off", "on"), ("local", "on"), ("remote_apply", "remote_apply")):
            await connection.execute(f"set synchronous_commit = {asked}")
            async with connection.transaction():
                await connection.execute(
                    "select ledger.renew_v1($1, $2, $3, 60)", lease.binding_id, lease.owner, lease.epoch
                )
                assert await connection.fetchval("show synchronous_commit") == expected


async def test_every_session_has_time_limits_on_the_server(ledger_dsns: dict[str, str], admin: Any) -> None:
    limits = Limits(lock=1.5, statement=2.5, idle_in_transaction=3.5)
    async with open_writer(ledger_dsns["writer"], limits=limits) as writer:
        shown = {
            name: await writer._connection.fetchval(f"show {name}")
            for name in (
                "lock_timeout",
                "statement_timeout",
                "idle_in_transaction_session_timeout",
                "application_name",
                "search_path",
                "TimeZone",
            )
        }
    assert shown == {
        "lock_timeout": "1500ms",
        "statement_timeout": "2500ms",
        "idle_in_transaction_session_timeout": "3500ms",
        "application_name": "apply-ledger writer",
        "search_path": "pg_catalog, pg_temp",
        "TimeZone": "UTC",
    }


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://user:s3cret/@host/db",
        "postgresql://user:p@ss:s3cret@host:s3cret/db",
        "host=s3cret",
        "https://user:s3cret@host/db",
        "postgresql://user@host:99999/s3cret",
        "postgresql://[s3cret",
    ],
)
@pytest.mark.rules("G12")
async def test_g12_a_dsn_that_cannot_be_one_is_refused_without_showing_it(dsn: str) -> None:
    for opening in (Ledger.open(dsn), WriterStore.open(dsn), migrate(dsn)):
        with pytest.raises((ConfigurationError, LedgerUnavailableError)) as refused:
            await opening
        assert "s3cret" not in str(refused.value)


@pytest.mark.rules("G11")
async def test_g11_a_server_that_is_away_is_told_soon_and_by_name(tmp_path: Any) -> None:
    dsn = f"postgresql://user:s3cret@/db?host={tmp_path}"
    limits = Limits(open=0.1)
    for opening in (Ledger.open(dsn, limits=limits), WriterStore.open(dsn, limits=limits), migrate(dsn)):
        with pytest.raises(LedgerUnavailableError) as refused:
            await opening
        assert refused.value.exit_code == 8
        assert "s3cret" not in str(refused.value)


async def test_a_wrong_password_or_database_is_told_at_once(ledger_dsns: dict[str, str]) -> None:
    with pytest.raises(LedgerPermissionError):
        await WriterStore.open(ledger_dsns["writer"].replace("test-only", "wrong"), allow_unsafe_fsync=True)
    scheme, rest = ledger_dsns["writer"].split("@/", 1)
    with pytest.raises(LedgerUnavailableError, match="does not exist"):
        await Ledger.open(f"{scheme}@/nowhere?{rest.split('?', 1)[1]}", allow_unsafe_fsync=True)


async def test_closing_twice_and_opening_again_by_use(writer: WriterStore, lease: Lease) -> None:
    await writer.close()
    await writer.close()
    await writer.append(lease, [applied(lease, 0)])


async def test_a_value_of_the_wrong_type_is_a_defect_and_not_a_refusal(writer: WriterStore, binding_id: int) -> None:
    with pytest.raises(Exception, match="invalid input for query argument") as raised:
        await claim(writer, "x")  # type: ignore[arg-type]  # that is the point
    assert not isinstance(raised.value, ConfigurationError | LedgerUnavailableError)
