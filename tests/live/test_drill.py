"""A drill on the real server: what the ledger says was applied is rebuilt on an empty branch, and is the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.bench.live.content import differences, read_objects
from tests.live import inventories
from tests.live.infrahub import LiveInfrahub
from tests.live.program import LiveProgram

pytestmark = [pytest.mark.live, pytest.mark.timeout(1800)]


@pytest.mark.rules("P17", "P20", "G3", "G8")
async def test_two_runs_are_rebuilt_on_an_empty_branch_and_read_back_equal(
    live_program: LiveProgram, live_infrahub: LiveInfrahub, tmp_path: Path
) -> None:
    configuration = inventories.library(tmp_path, count=2)
    first = live_program.plan(configuration)
    live_program.apply(first)
    rows = tmp_path / "library" / "dcim.device-types.jsonl"
    changed = [row | {"part_number": f"later {number}"} for number, row in enumerate(inventories.rows_of(rows))]
    inventories.write_rows(rows, changed)
    second = live_program.plan(configuration)
    assert second["counts"]["update"] == len(changed)
    live_program.apply(second)

    empty = live_infrahub.new_branch("drill")
    said = live_program.drill(empty)

    objects = first["counts"]["create"]
    assert (said["asserted"], said["equal"]) == (objects + len(changed), objects)
    assert (said["different"], said["not_rebuilt_total"], said["passed_over"]) == (0, 0, 0)
    mapping = yaml.safe_load(configuration.read_text(encoding="utf-8"))["schema_mapping"]
    there, here = [await read_objects(branch, mapping) for branch in (empty, live_program.branch)]
    assert list(differences(here, there)) == []
    assert len(there) == objects
    empty.discard()
