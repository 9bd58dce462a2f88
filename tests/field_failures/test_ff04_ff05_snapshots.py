"""FF04 and FF05: what was read is kept as it was read: every column, every value, or no plan."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger.exit_codes import ExitCode
from ledger.plan.errors import SnapshotReadBackError
from producers.errors import PlanRefusedError
from producers.planning import PlannedRun
from tests.support.memory_source import MemorySource
from tests.support.planning import Rows, entry, mapped, small
from tests.support.whole_path import WholePath, operations

TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
PARTS = entry("LabPart", "parts", ["first", "second"], mapped("first"), mapped("second"), mapped("notes"))
DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "settings", "labels", "height", "enabled", "since", "notes")),
    {"name": "site", "static": "dc1", "reference": "LabSite"},
)
OWN_COLUMNS = {"_source_id", "_tombstone", "_extract_ts"}


def snapshot(run: PlannedRun, kind: str, side: str = "A") -> list[dict[str, Any]]:
    """The rows of a snapshot, without our own columns."""
    rows = pq.read_table(run.run_dir / side / f"{kind}.parquet").to_pylist()
    return [{name: value for name, value in row.items() if name not in OWN_COLUMNS} for row in rows]


def devices(*rows: dict[str, Any]) -> Rows:
    return {"devices": [{"id": number, "name": f"d{number}", **row} for number, row in enumerate(rows)]}


@pytest.mark.rules("A61", "A74", "C4")
@pytest.mark.parametrize("order", [1, -1])
async def test_ff04_a_column_that_first_appears_later_is_there_for_every_row(lab: WholePath, order: int) -> None:
    lab.add("LabSite", name="dc1")
    rows = devices({}, {"height": 10}, {"notes": "n"}, {"settings": {"a": 1}}, {"labels": []}, {"enabled": False})
    run = await lab.plan({"devices": rows["devices"][::order]}, [DEVICES])
    found = {row["name"]: row for row in snapshot(run, "LabDevice")}
    assert {frozenset(row) for row in found.values()} == {frozenset(field["name"] for field in DEVICES["fields"])}
    assert [found["d1"]["height"], found["d2"]["notes"], found["d3"]["settings"]] == [10, "n", '{"a":1}']
    assert [found["d4"]["labels"], found["d5"]["enabled"], found["d0"]["height"]] == ["[]", False, None]


@pytest.mark.rules("A61", "A74", "C4")
async def test_ff04_a_first_row_without_anything_and_a_kind_without_rows_have_all_columns(lab: WholePath) -> None:
    loaded = small(lab.folder, {"parts": [], "tags": [{}, {"id": 1, "name": "t"}]}, [TAGS, PARTS])
    run = await lab.plan_loaded(loaded, continue_on_error=True)
    assert snapshot(run, "LabTag") == [{"name": None}, {"name": "t"}]
    empty = pq.read_table(run.run_dir / "A" / "LabPart.parquet")
    assert empty.num_rows == 0
    assert set(empty.column_names) == {"first", "second", "notes"} | OWN_COLUMNS
    assert [record.row_count for record in run.manifest.source_snapshot] == [0, 2]


@pytest.mark.rules("A74", "C4", "G11")
@pytest.mark.parametrize("loses", ["a column", "a value", "a row"])
async def test_ff04_a_library_that_loses_something_fails_the_plan_by_kind_and_field(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch, loses: str
) -> None:
    class Lossy(pq.ParquetWriter):  # type: ignore[misc]  # pyarrow has no types
        """A writer that does what people have seen writers do."""

        def __init__(self, where: Any, schema: Any) -> None:
            self.kept = schema.remove(schema.get_field_index("notes")) if loses == "a column" else schema
            super().__init__(where, self.kept)

        def write_batch(self, batch: Any) -> None:
            table = pa.Table.from_batches([batch])
            if loses == "a row":
                table = table.slice(1)
            if loses == "a value":
                index = table.schema.get_field_index("notes")
                table = table.set_column(index, "notes", pa.nulls(table.num_rows, pa.string()))
            super().write_table(table.select(self.kept.names))

    monkeypatch.setattr("ledger.plan.snapshot.pq.ParquetWriter", Lossy)
    rows = {"parts": [{"id": n, "first": str(n), "second": "x", "notes": "kept"} for n in range(3)]}
    with pytest.raises(SnapshotReadBackError) as caught:
        await lab.plan(rows, [PARTS])
    assert caught.value.exit_code is ExitCode.REFUSED
    assert caught.value.checked == f"the snapshot of LabPart, {'notes' if loses == 'a column' else 'any field'}"
    assert lab.saved_plans() == []
    assert list(lab.root.glob("small/*/A/*.parquet")) == []


VALUES: dict[str, tuple[str, list[Any], list[Any]]] = {
    "keys of nested objects": ("settings", [{"x": 1}, {"y": 2}, {}], ['{"x":1}', '{"y":2}', "{}"]),
    "numbers of two types": ("settings", [[1], [2.5], [1.0]], ["[1]", "[2.5]", "[1.0]"]),
    "numbers beside null": ("height", [2**53 + 1, None, 2**63 - 1, 0], [2**53 + 1, None, 2**63 - 1, 0]),
    "true and one": ("labels", [[True], [1], ["1"]], ["[true]", "[1]", '["1"]']),
    "dates and times": (
        "since",
        [date(2026, 1, 1), datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 10), "2026-01-01T10:00Z"],
        ["2026-01-01", "2026-01-01T10:00:00+00:00", "2026-01-01T10:00:00", "2026-01-01T10:00Z"],
    ),
    "texts": ("notes", ["", None, "NaN", "null", "\u2028", "é"], ["", None, "NaN", "null", "\u2028", "é"]),
    "exact decimals": ("notes", [Decimal("1.10"), Decimal("1E+2")], ["1.10", "1E+2"]),
    "flags beside null": ("enabled", [None, False, True], [True, False, True]),
}


@pytest.mark.rules("A20", "A74", "A76")
async def test_ff05_a_value_is_kept_beside_values_of_other_shapes(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add("LabSite", name="dc1")
    cases = [(field, value, kept[n]) for field, given, kept in VALUES.values() for n, value in enumerate(given)]
    MemorySource(devices(*({field: value} for field, value, _ in cases))).instead_of_files(monkeypatch)
    run = await lab.plan({}, [DEVICES])
    expected = [kept for _, _, kept in cases]
    assert _cells(snapshot(run, "LabDevice"), cases) == expected
    # the plan and the destination hold the same, and the next snapshot of the destination as well
    planned = {op.identity["name"]: op.payload or {} for op in operations(run)}
    assert (await lab.apply(run)).exit_code is ExitCode.DONE
    for number, (field, _, _) in enumerate(cases):
        stored = lab.values("LabDevice", name=f"d{number}")[field]
        assert json.dumps(stored) == json.dumps(planned[f"d{number}"][field])
    again = await lab.plan({}, [DEVICES])
    assert operations(again) == []
    assert _cells(snapshot(again, "LabDevice", "B"), cases) == expected


def _cells(rows: list[dict[str, Any]], cases: list[tuple[str, Any, Any]]) -> list[Any]:
    """The cell of each case, in the order of the cases."""
    by_name = {row["name"]: row for row in rows}
    return [by_name[f"d{number}"][field] for number, (field, _, _) in enumerate(cases)]


MISFITS = [
    ("height", 2.5, "2.5"),
    ("height", "10", "text"),
    ("height", True, "boolean"),
    ("height", 2**63, "64 bits"),
    ("notes", b"x", "bytes"),
    ("notes", 1, "whole number"),
    ("notes", ["x"], "list"),
    ("notes", object(), "object"),
    ("notes", 1j, "complex"),
    ("enabled", 0, "whole number"),
    ("settings", "{}", "text"),
    ("settings", {"a": b"x"}, "bytes"),
    ("settings", {"a": {1, 2}}, "set"),
    ("labels", [float("nan")], "float"),
    ("labels", {"0": "x"}, "mapping"),
    ("since", 1767225600, "whole number"),
]


@pytest.mark.rules("A20", "A74", "G11")
async def test_ff05_what_the_model_cannot_hold_fails_the_plan_by_kind_and_field(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.add("LabSite", name="dc1")
    MemorySource(devices({}, *({field: value} for field, value, _ in MISFITS), {})).instead_of_files(monkeypatch)
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan({}, [DEVICES])
    assert caught.value.exit_code is ExitCode.REFUSED
    told = {number: str(f) for f in caught.value.findings for number in range(18) if f"id {number})" in str(f)}
    told |= {number: str(f) for f in caught.value.findings for number in range(18) if f'"d{number}"' in str(f)}
    assert len(caught.value.findings) == len(MISFITS)
    for number, (field, _, words) in enumerate(MISFITS, start=1):
        assert all(word in told[number] for word in ("LabDevice", field, words)), told[number]
    assert lab.saved_plans() == []
    # left out on demand, their neighbours are kept
    run = await lab.plan({}, [DEVICES], continue_on_error=True)
    assert (run.counts["create"], run.counts["skip"]) == (2, len(MISFITS))
