"""What the doctor says of the ledger's database: each check fails where it has to, on a real server."""

from __future__ import annotations

import json

import pytest

from ledger.checkup import Said, Verdict, run_checks
from ledger.store.checkup import LedgerCheckup
from tests.support.postgres import PASSWORD
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
    assert list(said) == ["database", "migrations", "durability", "roles", "append-only", "database clock"]
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
