"""Hostile calls of the granted functions: each is refused by its state, and nothing is left of it (G2, G7, G8)."""

from __future__ import annotations

import pytest

from tests.integration.roles.calls import CALLS
from tests.integration.roles.fingerprint import changes, fingerprint
from tests.integration.roles.test_attacks import state_of
from tests.support.store import connection_to

pytestmark = pytest.mark.integration


@pytest.mark.rules("G2", "G7", "G8")
async def test_g08_each_call_that_should_not_get_through_is_refused_and_changes_nothing(
    filled: dict[str, str],
) -> None:
    wrong = []
    async with connection_to(filled["admin"]) as admin, connection_to(filled["writer"]) as connection:
        await connection.execute("select ledger.register_binding_v1('http://free.example', 'main')")
        before = await fingerprint(admin)
        for call in CALLS:
            found = await state_of(connection, call.statement)
            if found != call.state:
                wrong.append(f"{call.name}: {call.state} was owed, {found} came")
        # Identity numbers are handed out before a row is refused; they are no fact.
        assert changes(before, await fingerprint(admin), but="sequences") == []
    assert wrong == []
