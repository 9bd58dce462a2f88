"""What the doctor says of the ledger's database: each check fails where it has to, on a real server."""

from __future__ import annotations

import json
import uuid

import pytest

from ledger.checkup import Said, Verdict, run_checks
from ledger.store.checkup import LedgerCheckup
from tests.support.postgres import PASSWORD, PostgresServer
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


async def _checkup(dsn: str, projector: str | None = None, *, durable: bool = False) -> dict[str, list[Said]]:
    """What every check said; the password of the logins is nowhere in it."""
    checkup = LedgerCheckup(dsn, projector or dsn, allow_unsafe_fsync=not durable)
    said: dict[str, list[Said]] = {}
    try:
        async for result in run_checks("it", checkup.checks()):
            assert PASSWORD not in json.dumps(result.record())
            said.setdefault(result.check, []).append(result.said)
    finally:
        await checkup.close()
    return said


def _verdicts(said: dict[str, list[Said]]) -> dict[str, list[Verdict]]:
    return {name: [one.verdict for one in looks] for name, looks in said.items()}


@pytest.mark.rules("G4", "G8")
async def test_a_ledger_that_is_well_passes_and_its_logins_have_no_more_than_they_need(
    postgres18_ledger_dsns: dict[str, str],
) -> None:
    said = await _checkup(postgres18_ledger_dsns["writer"], postgres18_ledger_dsns["projector"])
    assert {verdict for looks in _verdicts(said).values() for verdict in looks} == {Verdict.GOOD}, said
    assert list(said) == [
        "database",
        "encoding",
        "migrations",
        "durability",
        "roles",
        "append-only",
        "unique keys",
        "database clock",
    ]
    assert [one.facts["owner"] for one in said["roles"]] == [False, False]


@pytest.mark.rules("G4")
async def test_g04_a_server_that_could_lose_what_it_committed_fails(postgres18_ledger_dsns: dict[str, str]) -> None:
    said = await _checkup(postgres18_ledger_dsns["writer"], durable=True)
    assert _verdicts(said)["durability"] == [Verdict.FAILURE]
    assert "fsync" in said["durability"][0].found
    assert said["append-only"][0].found == "not looked at, because of the durability"


@pytest.mark.rules("G8")
async def test_g08_a_login_that_could_rewrite_the_record_is_a_warning(postgres18_ledger_dsns: dict[str, str]) -> None:
    (said,) = (await _checkup(postgres18_ledger_dsns["admin"]))["roles"]
    assert said.verdict is Verdict.WARNING
    assert said.facts["superuser"] is True


async def test_a_login_that_may_not_append_fails_with_the_grant_that_it_needs(
    postgres18_ledger_dsns: dict[str, str],
) -> None:
    (said,) = (await _checkup(postgres18_ledger_dsns["reader"]))["roles"]
    assert said.verdict is Verdict.FAILURE
    assert said.next_action == "as an administrator: GRANT ledger_writer TO ledger_reader"


@pytest.mark.rules("G8")
async def test_g08_a_trigger_that_was_taken_away_is_named_by_its_table(postgres18_ledger_dsns: dict[str, str]) -> None:
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        await admin.execute("alter table ledger.event disable trigger all")
    (said,) = (await _checkup(postgres18_ledger_dsns["writer"]))["append-only"]
    assert said.verdict is Verdict.FAILURE
    assert said.facts["tables"] == ["event"]


@pytest.mark.rules("G7", "G8")
async def test_g07_a_key_that_was_taken_away_is_told_with_what_to_do(postgres18_ledger_dsns: dict[str, str]) -> None:
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        await admin.execute("drop index ledger.event_one_success")
        await admin.execute("alter table ledger.plan_operation drop constraint plan_operation_pkey")
    checked = await _checkup(postgres18_ledger_dsns["writer"])
    (said,) = checked["unique keys"]
    assert said.verdict is Verdict.FAILURE
    assert [key["table"] for key in said.facts["keys"]] == ["event", "plan_operation"]
    assert "2 of the keys that refuse a second row" in said.found
    assert "apply-ledger verify" in said.next_action
    assert _verdicts(checked)["append-only"] == [Verdict.GOOD]


@pytest.mark.rules("G1", "G11")
async def test_g01_a_database_that_cannot_hold_every_text_is_told_how_to_make_another(
    postgres18_server: PostgresServer, postgres18_empty_admin_dsn: str
) -> None:
    name = f"t_{uuid.uuid4().hex[:16]}"
    async with connection_to(postgres18_empty_admin_dsn) as admin:
        await admin.execute(f"create database {name} encoding 'SQL_ASCII' locale 'C' template template0")
    try:
        checked = await _checkup(postgres18_server.dsn(name))
    finally:
        postgres18_server.drop_database(name)
    (said,) = checked["encoding"]
    assert (said.verdict, said.facts) == (Verdict.FAILURE, {"encoding": "SQL_ASCII"})
    assert "ENCODING 'UTF8'" in said.next_action
    assert checked["durability"][0].found == "not looked at, because of the encoding"


async def test_a_database_that_was_never_migrated_is_told_what_to_run(postgres18_empty_admin_dsn: str) -> None:
    said = await _checkup(postgres18_empty_admin_dsn)
    assert _verdicts(said)["migrations"] == [Verdict.FAILURE]
    assert "apply-ledger migrate" in said["migrations"][0].next_action
    assert _verdicts(said)["roles"] == [Verdict.SKIPPED]


async def test_a_database_that_does_not_answer_is_the_reason_for_all_that_follows() -> None:
    said = await _checkup("postgresql://writer:pw@127.0.0.1:1/nothing")
    assert _verdicts(said)["database"] == [Verdict.FAILURE]
    assert {looks[0].found for name, looks in said.items() if name != "database"} == {
        "not looked at, because of the database"
    }


@pytest.mark.rules("G8")
async def test_g08_a_function_that_was_replaced_is_a_failure(postgres18_ledger_dsns: dict[str, str]) -> None:
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        await admin.execute("alter function ledger.append_v1 reset search_path")
    (said,) = (await _checkup(postgres18_ledger_dsns["writer"]))["append-only"]
    assert said.verdict is Verdict.FAILURE
    assert said.facts["functions"] == ["append_v1"]
