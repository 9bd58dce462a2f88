"""One line of an account: always the right one, in few look-ups, and in one where nothing lies between."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit.before_images import coverage_of
from ledger.plan.asserted import coverage_order
from ledger.plan.canonical import operation_id
from ledger.store.ledger import Ledger
from ledger.store.records import StoredPlan


@dataclass
class _Account:
    """A stored plan of which nothing but the account is asked for."""

    operations: int
    lines: Sequence[dict[str, Any]]
    asked: int = 0

    async def plan(self, checksum: str) -> StoredPlan:
        return StoredPlan(checksum, b"{}", self.operations, len(self.lines))

    async def coverage_line(self, checksum: str, ordinal: int) -> bytes | None:
        self.asked += 1
        assert 0 <= ordinal < len(self.lines)
        return json.dumps(self.lines[ordinal]).encode()


def _record(number: int, *, written: bool) -> dict[str, Any]:
    identity = {"name": f"object {number}"}
    record: dict[str, Any] = {"kind": "BuiltinTag", "identity": identity, "tier": number % 3}
    if written:
        return {**record, "action": "update", "operation_id": operation_id("update", "BuiltinTag", identity)}
    return {**record, "action": "none"}


@settings(deadline=None)
@given(written=st.lists(st.booleans(), min_size=1, max_size=60), wrong=st.integers(0, 80))
@pytest.mark.rules("H16", "H24")
async def test_each_operation_finds_its_own_line(written: list[bool], wrong: int) -> None:
    lines = sorted(
        (_record(number, written=flag) for number, flag in enumerate(written)),
        key=lambda record: coverage_order(record) or (0, ""),
    )
    operations = [line for line in lines if line["action"] != "none"]
    for ordinal, operation in enumerate(operations):
        for place in (ordinal, 0, wrong):
            account = _Account(len(operations), lines)
            assert await coverage_of(cast("Ledger", account), "c", operation, ordinal=place) == operation
            assert account.asked <= 2 * math.ceil(math.log2(len(lines) + 1)) + 2
            if place == ordinal and len(lines) == len(operations):
                assert account.asked == 1


@settings(deadline=None)
@given(kept=st.integers(0, 20), ordinal=st.integers(0, 40))
async def test_a_line_that_is_not_there_is_none_after_few_look_ups(kept: int, ordinal: int) -> None:
    """An account that somebody shortened, or one of another plan."""
    lines = sorted(
        (_record(n, written=True) for n in range(kept)), key=lambda record: coverage_order(record) or (0, "")
    )
    account = _Account(40, lines)
    missing = _record(99, written=True)
    assert await coverage_of(cast("Ledger", account), "c", missing, ordinal=ordinal) is None
    assert account.asked <= 2 * math.ceil(math.log2(len(lines) + 1)) + 2
