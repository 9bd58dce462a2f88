"""No role of the service reaches round the functions: every attack, every role, both versions (G8)."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from tests.integration.roles.attacks import ATTACKS, NOTHING, POSSIBLE, Attack
from tests.integration.roles.conftest import rolled_back
from tests.integration.roles.fingerprint import changes, fingerprint
from tests.support.postgres import ROLES, PostgresServer
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


async def state_of(connection: Any, statement: str) -> str:
    """The SQLSTATE with which a statement is refused, or ``00000``."""
    try:
        await connection.execute(statement)
    except asyncpg.PostgresError as refused:
        return str(refused.sqlstate)
    return "00000"


async def _answer(connection: Any, attack: Attack, role: str) -> str:
    async with AsyncExitStack() as stack:
        if attack.in_transaction or attack.answer_to(role) == POSSIBLE:
            await stack.enter_async_context(rolled_back(connection))
        return await state_of(connection, attack.statement)


@pytest.mark.rules("G8")
@pytest.mark.parametrize("role", ROLES)
async def test_g08_each_attack_is_refused_as_the_table_says_and_changes_nothing(
    filled: dict[str, str], postgres_server: PostgresServer, role: str
) -> None:
    wrong: list[str] = []
    async with connection_to(filled["admin"]) as admin, connection_to(filled[role]) as connection:
        before = await fingerprint(admin)
        for attack in ATTACKS:
            if attack.only not in (None, postgres_server.version):
                continue
            owed = attack.answer_to(role)
            found = await _answer(connection, attack, role)
            if found != ("00000" if owed in (NOTHING, POSSIBLE) else owed):
                wrong.append(f"{attack.name}: {owed} was owed, {found} came")
            # A refused statement leaves nothing by itself; looking after the others and at the end is looking at all.
            if found == "00000" or attack is ATTACKS[-1]:
                after = await fingerprint(admin)
                if changed := changes(before, after):
                    wrong.append(f"{attack.name}, or a refused one before it: changed {changed}")
                    before = after
                await connection.execute("discard all")
    assert wrong == []


@pytest.mark.rules("G8")
async def test_g08_the_owner_of_everything_cannot_log_in(
    filled: dict[str, str], postgres_server: PostgresServer
) -> None:
    name = postgres_server.database_of(filled["admin"])
    with pytest.raises(asyncpg.PostgresError) as refused:
        await asyncpg.connect(postgres_server.dsn(name, user="ledger_owner"))
    # Without a password the server does not even say that the role may not log in.
    assert refused.value.sqlstate == "28P01"


@pytest.mark.rules("G8")
async def test_g08_nobody_ends_the_sessions_of_another_role(filled: dict[str, str]) -> None:
    """Of one's own role everybody may: processes that share a role are not protected from each other."""
    async with AsyncExitStack() as stack:
        open_ones = {role: await stack.enter_async_context(connection_to(dsn)) for role, dsn in filled.items()}
        backends = {role: await one.fetchval("select pg_backend_pid()") for role, one in open_ones.items()}
        for role in ROLES:
            for other, backend in backends.items():
                for call in ("pg_terminate_backend", "pg_cancel_backend"):
                    if role != other:
                        state = await state_of(open_ones[role], f"select {call}({backend})")
                        assert state == "42501", f"{role} ended a session of {other}"


@pytest.mark.rules("G8")
@pytest.mark.parametrize("role", ROLES)
async def test_g08_every_function_answers_each_role_as_it_was_granted(filled: dict[str, str], role: str) -> None:
    """Called without any argument that means something: granted or not, nothing changes."""
    async with connection_to(filled["admin"]) as admin, connection_to(filled[role]) as connection:
        before = await fingerprint(admin)
        rows = await admin.fetch(
            "select p.oid::regprocedure::text as name, p.proname, p.prosecdef,"
            " p.prorettype = 'trigger'::regtype as trigger,"
            " array(select format('null::%s', t::regtype) from unnest(p.proargtypes) t) as nulls"
            " from pg_proc p where p.pronamespace = 'ledger'::regnamespace order by 1"
        )
        assert len(rows) > 30
        for row in rows:
            state = await state_of(connection, f"select ledger.{row['proname']}({', '.join(row['nulls'])})")
            if row["trigger"]:
                assert state in ("0A000", "42501"), row["name"]
            elif role == "writer" and row["prosecdef"]:
                assert state != "42501", row["name"]
                assert state[:2] in ("LG", "22", "23"), f"{row['name']}: {state}"
            else:
                assert state == "42501", row["name"]
        # Identity numbers are handed out before a row is refused; they are no fact.
        assert changes(before, await fingerprint(admin), but="sequences") == []
