"""What failed first is what is told, also where its own record finds no room."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ledger.plan.errors import PlanWriteFailedError
from producers import planning
from producers.errors import PlanRefusedError
from tests.support.fake_reader import FakeDestination
from tests.support.planning import entry, mapped, plan, small

TAGS = entry("BuiltinTag", "tags", ["name"], mapped("name"))


def _no_room(*_: object) -> None:
    raise PlanWriteFailedError(checked="run.json", expected="a file", found="No space left", next_action="make room")


@pytest.mark.rules("G11")
async def test_a_refused_plan_is_told_by_its_fault_although_the_record_of_it_finds_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "write_run_record", _no_room)
    loaded = small(tmp_path, {"tags": [{"id": "1", "name": None}]}, [TAGS])
    with capture_logs() as logs, pytest.raises(PlanRefusedError):
        await plan(loaded, FakeDestination(namespaces=()), tmp_path)
    assert any("No space left" in line.get("error", "") for line in logs)
