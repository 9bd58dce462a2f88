"""Several commits in one transaction: all of them or none, repeats among them are one order, the chain holds (G7)."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.store.errors import CommitConflictError, InvalidCallError
from ledger.store.ledger import Ledger
from tests.support.store import BINDING, chain_is_whole, make_commit

pytestmark = pytest.mark.integration


_NOTE_STATEMENTS = """
create table public.statement_of_order (began timestamptz not null);
create function public.note_statement() returns trigger language plpgsql security definer as $$
begin
    insert into public.statement_of_order values (statement_timestamp());
    return null;
end $$;
create trigger note_statement after insert on ledger.inbox for each row execute function public.note_statement();
"""
"""``statement_timestamp()`` is when the client's latest message arrived."""


async def _runs(ledger: Ledger, binding_id: int) -> list[str]:
    return [order.run_id for order in await ledger.open_orders(binding_id)]


@pytest.mark.rules("G7", "G8")
async def test_g07_several_are_orders_in_their_order_and_a_repeat_among_them_is_one(
    ledger: Ledger, binding_id: int
) -> None:
    first, second, third = (make_commit(f"run-{number}", f"{number:064x}") for number in range(3))
    await ledger.submit_commit(binding_id, first)
    receipts = await ledger.submit_commits(binding_id, [second, first, third, second])
    assert [receipt.first for receipt in receipts] == [True, False, True, False]
    assert receipts[0].inbox_id == receipts[3].inbox_id
    assert await _runs(ledger, binding_id) == ["run-0", "run-1", "run-2"]
    events = [event async for event in ledger.events(binding_id)]
    assert [(event.kind, event.run_id) for event in events] == [("plan.committed", f"run-{n}") for n in range(3)]
    assert await chain_is_whole(ledger, binding_id) == 3


@pytest.mark.rules("G7", "G10")
async def test_g07_where_one_is_refused_none_is_recorded(ledger: Ledger, binding_id: int) -> None:
    first, second = (make_commit(f"run-{number}", f"{number:064x}") for number in range(2))
    conflicting = make_commit("run-0", f"{0:064x}", source="another")
    with pytest.raises(CommitConflictError):
        await ledger.submit_commits(binding_id, [first, second, conflicting])
    elsewhere = make_commit("run-2", f"{2:064x}", binding=BINDING.model_copy(update={"branch": "other"}))
    with pytest.raises(InvalidCallError):
        await ledger.submit_commits(binding_id, [first, elsewhere])
    assert await _runs(ledger, binding_id) == []


@pytest.mark.rules("G2", "G7")
async def test_g02_between_several_the_lock_of_the_binding_is_never_held_for_the_client(
    ledger: Ledger, binding_id: int, admin: Any
) -> None:
    """A client that stops between two statements of a transaction keeps the writer from renewing its lease."""
    await admin.execute(_NOTE_STATEMENTS)
    receipts = await ledger.submit_commits(binding_id, [make_commit(f"run-{n}", f"{n:064x}") for n in range(5)])
    assert [receipt.first for receipt in receipts] == [True] * 5
    noted = "select count(*), count(distinct began) from public.statement_of_order"
    assert tuple(await admin.fetchrow(noted)) == (5, 1)
