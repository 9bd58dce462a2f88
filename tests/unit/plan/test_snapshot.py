"""Snapshots: nothing lost, nothing changed, and a digest over the rows that does not depend on the run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger.plan import snapshot
from ledger.plan import snapshot_digest as digest_module
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.errors import (
    PlanArtifactUnreadableError,
    PlanWriteFailedError,
    SnapshotCorruptError,
    SnapshotReadBackError,
    SnapshotValueError,
    UnserializablePayloadValueError,
)
from ledger.plan.model import SourceSnapshotRecord
from ledger.plan.snapshot import ColumnType, EncodedCell, SnapshotWriter
from ledger.plan.snapshot_digest import snapshot_digest

COLUMNS = {
    "name": ColumnType.TEXT,
    "vlan": ColumnType.INTEGER,
    "weight": ColumnType.NUMBER,
    "enabled": ColumnType.BOOLEAN,
    "data": ColumnType.JSON,
}
TAKEN = datetime(2026, 7, 26, 18, tzinfo=UTC)


@pytest.fixture
def side(tmp_path: Path) -> Path:
    (tmp_path / "A").mkdir()
    return tmp_path / "A"


def write(
    side: Path, rows: list[dict[str, Any]], *, taken: datetime = TAKEN, columns: dict[str, ColumnType] | None = None
) -> SourceSnapshotRecord:
    path = side / "DcimDevice.parquet"
    with SnapshotWriter(path, kind="DcimDevice", columns=columns or COLUMNS, extracted_at=taken) as writer:
        for number, row in enumerate(rows):
            writer.write(str(number), row)
        return writer.close()


def read(side: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(side / "DcimDevice.parquet").to_pylist()
    return rows


@pytest.mark.rules("A4", "A61", "A74", "C4")
def test_every_row_and_value_is_read_back_unchanged(side: Path) -> None:
    rows: list[dict[str, Any]] = [
        {},
        {"name": "a"},
        {"name": "b", "vlan": 10},
        {"name": "", "vlan": 2**53 + 1, "weight": -0.0, "enabled": False, "data": {"m": {"x": 1}}},
        {"name": "é\u2028", "vlan": -(2**63), "weight": 2.5, "enabled": True, "data": [1, 1.0, True, None, "x"]},
        {"name": "null", "vlan": None, "data": {"m": {"y": 2}}},
    ]
    record = write(side, rows)

    assert record.path == "A/DcimDevice.parquet"
    assert record.row_count == 6
    found = read(side)
    for number, (row, stored) in enumerate(zip(rows, found, strict=True)):
        data = row.get("data")
        expected = {name: row.get(name) for name in COLUMNS}
        expected["data"] = None if data is None else canonical_json_bytes(data).decode()
        assert repr({name: stored[name] for name in COLUMNS}) == repr(expected)
        assert (stored["_source_id"], stored["_tombstone"], stored["_extract_ts"]) == (str(number), False, TAKEN)


@pytest.mark.rules("A74", "A20")
def test_a_cell_that_was_encoded_before_is_the_cell_of_its_value(side: Path) -> None:
    value = [{"unique_id": 'é "1"', "id": None}, 1.5]
    cell = EncodedCell.of(value, kind="DcimDevice", field="data")
    assert write(side, [{"name": "a", "data": cell}] * 2) == write(side, [{"name": "a", "data": value}] * 2)
    # only a column of JSON takes it as it is: in one of text it is a text, checked like any other
    assert write(side, [{"name": cell}]) == write(side, [{"name": str(cell)}])
    with pytest.raises(UnserializablePayloadValueError, match=r"DcimDevice\.data"):
        EncodedCell.of([b"x"], kind="DcimDevice", field="data")


@pytest.mark.rules("A61", "A76", "C4")
def test_a_kind_without_rows_has_a_file_with_all_columns(side: Path) -> None:
    record = write(side, [])

    table = pq.read_table(side / "DcimDevice.parquet")
    assert table.column_names == [*COLUMNS, "_source_id", "_tombstone", "_extract_ts"]
    assert (record.row_count, record.digest) == (0, hashlib.sha256().hexdigest())


@pytest.mark.rules("A74", "A75")
def test_the_digest_leaves_out_the_time_of_extraction_and_nothing_else(side: Path) -> None:
    rows = [{"name": "a"}, {"name": "b"}]
    record = write(side, rows)

    assert write(side, rows, taken=TAKEN + timedelta(days=1)) == record
    assert write(side, list(reversed(rows))).digest != record.digest
    assert write(side, [{"name": "a"}, {"name": "c"}]).digest != record.digest
    with SnapshotWriter(side / "DcimDevice.parquet", kind="DcimDevice", columns=COLUMNS) as writer:
        writer.write("0", rows[0])
        writer.write("1", rows[1], tombstone=True)
        assert writer.close().digest != record.digest


@pytest.mark.rules("A74")
def test_the_digest_is_over_canonical_rows_joined_by_line_feeds(side: Path) -> None:
    record = write(side, [{"name": "b"}, {"name": "a"}], columns={"name": ColumnType.TEXT})

    rows = [{"name": name, "_source_id": str(n), "_tombstone": False} for n, name in enumerate("ba")]
    assert record.digest == hashlib.sha256(b"\n".join(canonical_json_bytes(row) for row in rows)).hexdigest()


@pytest.mark.rules("A74")
@pytest.mark.parametrize("batch", [1, 2, 3, 1000])
def test_the_digest_does_not_depend_on_batches(side: Path, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    rows = [{"name": f"n{number}", "vlan": number} for number in range(7)]
    record = write(side, rows)
    monkeypatch.setattr(snapshot, "BATCH_ROWS", batch)

    assert write(side, rows) == record
    assert [row["vlan"] for row in read(side)] == list(range(7))


WRONG_VALUES: dict[str, tuple[str, Any]] = {
    "a number as text": ("name", 1), "text as a number": ("vlan", "1"), "a boolean as a number": ("vlan", True),
    "a float as an integer": ("vlan", 1.0), "an integer as a float": ("weight", 1), "a number as true": ("enabled", 1),
    "an integer beyond 64 bits": ("vlan", 2**63), "a list as text": ("name", ["a"]), "a mapping as text": ("name", {}),
}  # fmt: skip


@pytest.mark.rules("A76", "G11")
@pytest.mark.parametrize(("field", "value"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_a_value_that_its_column_would_change_fails_naming_kind_and_field(side: Path, field: str, value: Any) -> None:
    with pytest.raises(SnapshotValueError, match=rf"DcimDevice\.{field}"):
        write(side, [{"name": "first"}, {field: value}])
    assert list(side.iterdir()) == []


@pytest.mark.rules("A20")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "a\x00", "\ud800", b"x", {1: 2}, Decimal("NaN")])
@pytest.mark.parametrize("field", list(COLUMNS))
def test_a_value_without_canonical_form_fails_naming_kind_and_field(side: Path, field: str, value: Any) -> None:
    with pytest.raises(UnserializablePayloadValueError, match=rf"DcimDevice\.{field}"):
        write(side, [{field: value}])
    assert list(side.iterdir()) == []


@pytest.mark.rules("A61")
def test_a_field_without_a_column_is_refused_and_not_dropped(side: Path) -> None:
    with pytest.raises(SnapshotValueError, match="serial"):
        write(side, [{"name": "a"}, {"name": "b", "serial": "x"}])


@pytest.mark.rules("A18")
def test_times_and_decimals_are_kept_as_their_text(side: Path) -> None:
    write(side, [{"name": date(2026, 1, 1)}, {"name": datetime(2026, 1, 1, 10, tzinfo=UTC)}, {"name": Decimal("2.50")}])

    assert [row["name"] for row in read(side)] == ["2026-01-01", "2026-01-01T10:00:00+00:00", "2.50"]


def test_a_column_of_our_own_cannot_be_a_field(side: Path) -> None:
    with pytest.raises(SnapshotValueError, match="_tombstone"):
        SnapshotWriter(side / "x.parquet", kind="x", columns={"_tombstone": ColumnType.BOOLEAN})
    assert list(side.iterdir()) == []


@pytest.mark.rules("C32")
def test_a_snapshot_that_is_not_closed_does_not_appear(side: Path) -> None:
    with SnapshotWriter(side / "x.parquet", kind="x", columns=COLUMNS) as writer:
        writer.write("0", {"name": "a"})
    assert list(side.iterdir()) == []


@pytest.mark.rules("A61", "A74")
def test_a_snapshot_that_reads_back_differently_is_removed_and_refused(
    side: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot, "snapshot_digest", lambda path: ("0" * 64, 1))

    with pytest.raises(SnapshotReadBackError, match="DcimDevice"):
        write(side, [{"name": "a"}])
    assert list(side.iterdir()) == []


@pytest.mark.rules("A61", "A74")
def test_values_that_arrow_would_change_are_caught_with_kind_and_field(
    side: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = pa.array

    def lossy(values: list[Any], type: Any) -> Any:
        return original([value.upper() if isinstance(value, str) else value for value in values], type=type)

    monkeypatch.setattr(pa, "array", lossy)
    with pytest.raises(SnapshotReadBackError, match="DcimDevice, name"):
        write(side, [{"name": "a"}])


def test_a_full_disk_is_a_named_failure(side: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, batch: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with pytest.raises(PlanWriteFailedError, match="No space left"):
        write(side, [{"name": "a"}])
    assert list(side.iterdir()) == []


# --- files of other programs ----------------------------------------------------------------------------------------


@pytest.mark.rules("A74", "A76")
def test_foreign_types_are_digested_by_their_canonical_form(side: Path) -> None:
    moment = datetime(2026, 1, 1, 10, tzinfo=UTC)
    rows = [
        {
            "when": moment,
            "day": date(2026, 1, 1),
            "amount": Decimal("1.50"),
            "tags": ["b", "a"],
            "more": {"y": 1, "x": None},
        }
    ]
    pq.write_table(pa.Table.from_pylist(rows), side / "x.parquet")

    expected = {
        "amount": "1.50", "day": "2026-01-01", "more": {"x": None, "y": 1}, "tags": ["b", "a"],
        "when": "2026-01-01T10:00:00+00:00",
    }  # fmt: skip
    assert snapshot_digest(side / "x.parquet") == (hashlib.sha256(canonical_json_bytes(expected)).hexdigest(), 1)


@pytest.mark.rules("A76")
@pytest.mark.parametrize("rows", [[{"x": b"bytes"}], [{"x": float("nan")}], [{"x": float("inf")}]])
def test_foreign_values_without_canonical_form_are_corrupt(side: Path, rows: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(rows), side / "x.parquet")

    with pytest.raises(SnapshotCorruptError, match=r"x\.x"):
        snapshot_digest(side / "x.parquet")


@pytest.mark.rules("A76")
def test_no_flipped_byte_of_a_snapshot_is_a_crash(side: Path) -> None:
    write(side, [{"name": "prod", "vlan": 1}, {"name": "staging"}])
    path = side / "DcimDevice.parquet"
    whole = path.read_bytes()
    refused = 0
    for offset in range(0, len(whole), 7):
        path.write_bytes(whole[:offset] + bytes([whole[offset] ^ 0xFF]) + whole[offset + 1 :])
        try:
            snapshot_digest(path)  # A byte of a statistic or of the time of extraction is no part of the rows.
        except SnapshotCorruptError:
            refused += 1
    assert refused > len(whole) // 7 // 4


@pytest.mark.rules("A12")
def test_an_absent_snapshot_is_no_empty_one(side: Path) -> None:
    with pytest.raises(PlanArtifactUnreadableError):
        snapshot_digest(side / "gone.parquet")


@pytest.mark.rules("A74", "C11")
def test_a_large_snapshot_is_digested_in_batches(side: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest_module, "READ_ROWS", 100)
    write(side, [{"name": str(number)} for number in range(1000)])
    sizes: list[int] = []
    original = pq.ParquetFile.iter_batches

    def noting(self: Any, **arguments: Any) -> Iterator[Any]:
        for batch in original(self, **arguments):
            sizes.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noting)
    assert snapshot_digest(side / "DcimDevice.parquet")[1] == 1000
    assert max(sizes) <= 100
