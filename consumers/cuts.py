"""Lists in event bodies: cut where they do not fit, with the whole list stored beside the events by its digest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from consumers.ports import LedgerPort
from ledger.events import MAX_BODY_BYTES, Cut
from ledger.plan.canonical import canonical_json_bytes

_BUDGET = MAX_BODY_BYTES // 2
_Item = TypeVar("_Item", bound=BaseModel)


async def fit(ledger: LedgerPort, items: Sequence[_Item]) -> tuple[list[_Item], Cut | None]:
    """The first items that fit into half a body; where that is not all, the whole list is stored in ``detail``."""
    kept: list[_Item] = []
    size = 0
    for item in items:
        size += len(canonical_json_bytes(item.model_dump(mode="json"))) + 1
        if size > _BUDGET:
            whole = canonical_json_bytes([each.model_dump(mode="json") for each in items])
            return kept, Cut(total=len(items), sha256=await ledger.store_detail(whole))
        kept.append(item)
    return kept, None
