"""Truncates lists in event bodies that are too long, and stores the whole list under its digest next to the events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TypeVar

from pydantic import BaseModel

from consumers.ports import LedgerPort
from ledger.events import MAX_BODY_BYTES, MAX_DETAIL_BYTES, Cut
from ledger.plan.canonical import canonical_json_bytes

_BUDGET = MAX_BODY_BYTES // 2
_Item = TypeVar("_Item", bound=BaseModel)


async def fit(ledger: LedgerPort, items: Sequence[_Item]) -> tuple[list[_Item], Cut | None]:
    """The first items that fit into half a body; where that is not all, the list is stored in ``detail``.

    What even ``detail`` cannot hold is cut there too; ``total`` then says how many there were. A list that is too long
    must not keep an order from being carried out or refused.
    """
    encoded = [canonical_json_bytes(item.model_dump(mode="json")) for item in items]
    kept = _how_many(encoded, _BUDGET)
    if kept == len(items):
        return list(items), None
    stored = b"[" + b",".join(encoded[: _how_many(encoded, MAX_DETAIL_BYTES - 1)]) + b"]"
    return list(items[:kept]), Cut(total=len(items), sha256=await ledger.store_detail(stored))


def _how_many(encoded: Sequence[bytes], budget: int) -> int:
    """How many of them fit, each with one byte for what separates it from the next."""
    return sum(size <= budget for size in accumulate(len(item) + 1 for item in encoded))
