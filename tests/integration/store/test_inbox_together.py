"""Several commits in one transaction: all of them or none, repeats among them are one order, the chain holds (G7)."""

from __future__ import annotations

import pytest

from ledger.store.errors import CommitConflictError, InvalidCallError
from ledger.store.ledger import Ledger
from tests.support.store import BINDING, chain_is_whole, make_commit

pytestmark = pytest.mark.integration


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
