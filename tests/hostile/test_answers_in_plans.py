"""Odd values that a destination holds: a plan that compares with them, or a named refusal; never half a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.reader import load_plan_artifact
from tests.hostile.answers.documents import nested
from tests.support.fake_reader import FakeDestination
from tests.support.planning import entry, mapped, plan, small

ODD: list[Any] = [
    "nul \x00 inside",
    "half \ud800 a pair",
    "\ufeffmark \u202e and \u200b nothing",
    "x" * 1_000_000,
    10**300,
    -(10**700),
    1e308,
    True,
    404.0,
    [],
    {},
    [None, [1, {"a": None}]],
    nested(60),
    nested(90),
    {"identity": {"name": "x"}, "peer_kind": "BuiltinTag"},
]


@pytest.mark.rules("G11", "A20")
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: repr(odd)[:40])
@pytest.mark.parametrize("field", ["name", "description"])
async def test_ff19_a_value_that_only_a_destination_can_hold_is_compared_or_refused_by_name(
    tmp_path: Path, field: str, odd: Any
) -> None:
    destination = FakeDestination()
    destination.add("BuiltinTag", **{"name": "prod", "description": "a", field: odd})
    rows = {"tags": [{"id": 1, "name": "prod", "description": "b"}]}
    tags = entry("BuiltinTag", "tags", ["name"], mapped("name"), mapped("description"))
    try:
        run = await plan(small(tmp_path, rows, [tags]), destination, tmp_path / "runs")
    except ApplyLedgerError as refusal:
        _require_good_words(refusal)
        assert not list((tmp_path / "runs").rglob("manifest.json"))
    else:
        actions = {operation.action for operation in load_plan_artifact(run.run_dir).operations}
        assert actions == ({"update"} if field == "description" else {"create", "delete"})


def _require_good_words(refusal: ApplyLedgerError) -> None:
    assert refusal.exit_code is ExitCode.REFUSED, refusal
    assert refusal.next_action
    assert len(str(refusal).encode()) < 5000
