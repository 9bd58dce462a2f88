"""Lists that are too long for an event, and lists that are too long for anything."""

from __future__ import annotations

import hashlib
import json

import pytest

from consumers import cuts
from ledger.errors import Finding
from ledger.plan.canonical import canonical_json_bytes
from tests.support.memory_ledger import MemoryLedger

FINDINGS = [
    Finding(name="Fault", checked=f"row {number}", expected="a", found="b" * 100, next_action="c")
    for number in range(3000)
]


@pytest.mark.rules("G11")
async def test_g11_a_list_that_does_not_fit_an_event_stands_whole_beside_it() -> None:
    ledger = MemoryLedger()
    kept, cut = await cuts.fit(ledger, FINDINGS)
    assert cut is not None
    assert 0 < len(kept) < cut.total == 3000
    whole = canonical_json_bytes([finding.model_dump(mode="json") for finding in FINDINGS])
    assert ledger.details == {cut.sha256: whole}
    assert hashlib.sha256(whole).hexdigest() == cut.sha256


@pytest.mark.rules("G10", "G11")
async def test_g10_a_list_that_nothing_can_hold_is_cut_and_its_length_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """An append or a detail that is refused for its size would be asked for again for ever, and block the binding."""
    limit = 300_000
    monkeypatch.setattr(cuts, "MAX_DETAIL_BYTES", limit)
    ledger = MemoryLedger()
    _, cut = await cuts.fit(ledger, FINDINGS)
    assert cut is not None
    assert cut.total == 3000
    (stored,) = ledger.details.values()
    items = json.loads(stored)
    assert limit - 200 < len(stored) <= limit
    assert [item["checked"] for item in items] == [finding.checked for finding in FINDINGS[: len(items)]]


async def test_a_list_that_fits_is_not_stored_twice() -> None:
    ledger = MemoryLedger()
    assert await cuts.fit(ledger, FINDINGS[:3]) == (FINDINGS[:3], None)
    assert await cuts.fit(ledger, []) == ([], None)
    assert ledger.details == {}
