"""What whoever holds the files of an export can do to them, and write every digest of the manifest anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ledger.audit import Level
from ledger.audit.export.layout import file_record, files_below, read_manifest, write_manifest

Row = dict[str, Any]
Forgery = Callable[[Path, Random], None]


def cover_up(root: Path, **changes: Any) -> None:
    """Write the manifest for the files as they are now."""
    manifest = read_manifest(root)
    files = [file_record(root, path) for path in files_below(root)]
    write_manifest(root, manifest.model_copy(update={"files": files, **changes}))


def edit_rows(path: Path, change: Callable[[list[Row]], Sequence[Mapping[str, Any]]], *, group: int = 10) -> None:
    """Write a table anew with other rows, in the columns that it has."""
    schema = pq.read_schema(path)
    rows = change(pq.read_table(path).to_pylist())
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path, row_group_size=group)


@dataclass(frozen=True, slots=True)
class ForgedExport:
    """One kind of forgery, and the level that has to find it once the manifest was written anew."""

    what: str
    forge: Forgery
    level: Level


def _made_up(row: Row, position: int) -> Row:
    """An event that says what somebody would like to have happened."""
    return {
        **row,
        "position": position,
        "kind": "operation.applied",
        "event_id": "00000000-0000-4000-8000-000000000000",
    }


def _events(change: Callable[[list[Row], Random], Sequence[Row]]) -> Forgery:
    """Other events, and no lines beside them, as of an export that was written without."""

    def forge(root: Path, random: Random) -> None:
        (root / "events.ndjson").unlink(missing_ok=True)
        edit_rows(root / "events.parquet", lambda rows: change(rows, random))

    return forge


def _runs(change: Callable[[list[Row], Random], Sequence[Row]]) -> Forgery:
    return lambda root, random: edit_rows(root / "runs.parquet", lambda rows: change(rows, random))


def _invented_run(row: Row, **said: str) -> Row:
    """A row of a run, or of one that never was, whose columns agree with the commit beside them."""
    commit = {**json.loads(row["commit"]), **said}
    text = json.dumps(commit, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return {**row, **{name: value for name, value in said.items() if name in row}, "commit": text}


def _invented_plan(root: Path, random: Random) -> None:
    """A plan that no run was committed with, in its own folder and in the manifest."""
    manifest = read_manifest(root)
    checksum = f"{random.getrandbits(256):064x}"
    shutil.copytree(root / "plans" / random.choice(manifest.plans), root / "plans" / checksum)
    cover_up(root, plans=sorted([*manifest.plans, checksum]))


def _file_too_many(root: Path, random: Random) -> None:
    name = random.choice(("notes.txt", "details/0", "plans/readme.md", "events.parquet.bak"))
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")


def _in_front(rows: list[Row], random: Random) -> list[Row]:
    return [_made_up(random.choice(rows), -random.randint(0, 10**6)), *rows]


def _somewhere_in_front(rows: list[Row], random: Random) -> list[Row]:
    at = random.randint(1, len(rows) - 1)
    return [*rows[:at], _made_up(rows[at], -random.randint(0, 10**6)), *rows[at:]]


def _second_of_a_place(rows: list[Row], random: Random) -> list[Row]:
    at = random.randrange(len(rows))
    return [*rows[: at + 1], _made_up(rows[at], rows[at]["position"]), *rows[at + 1 :]]


def _behind(rows: list[Row], random: Random) -> list[Row]:
    return [*rows, _made_up(rows[-1], rows[-1]["position"] + random.randint(1, 10))]


def _taken_out(rows: list[Row], random: Random) -> list[Row]:
    at = random.randrange(len(rows) - 1)  # the last one is the head's
    return rows[:at] + rows[at + 1 :]


def _other_body(rows: list[Row], random: Random) -> list[Row]:
    at = random.randrange(len(rows))
    return [*rows[:at], {**rows[at], "body": rows[at]["body"] + " "}, *rows[at + 1 :]]


def _run_twice(rows: list[Row], random: Random) -> list[Row]:
    at = random.randrange(len(rows))
    return [_invented_run(rows[at], actor="mallory", reason="made up"), *rows]


def _run_too_many(rows: list[Row], random: Random) -> list[Row]:
    return [*rows, _invented_run(random.choice(rows), run_id="run-made-up")]


def _runs_swapped(rows: list[Row], random: Random) -> list[Row]:
    at = random.randrange(len(rows) - 1)
    return [*rows[:at], rows[at + 1], rows[at], *rows[at + 2 :]]


def _run_elsewhere(rows: list[Row], random: Random) -> list[Row]:
    at = random.randrange(len(rows))
    return [*rows[:at], {**rows[at], "committed_position": rows[at]["committed_position"] + 1}, *rows[at + 1 :]]


FORGERIES = (
    ForgedExport("an event in front of the first", _events(_in_front), Level.POSITIONS),
    ForgedExport("an event of a place in front of the first", _events(_somewhere_in_front), Level.POSITIONS),
    ForgedExport("a second event of a position", _events(_second_of_a_place), Level.POSITIONS),
    ForgedExport("an event behind the head", _events(_behind), Level.HEAD),
    ForgedExport("an event taken out", _events(_taken_out), Level.CHAIN),
    ForgedExport("another body of an event", _events(_other_body), Level.CHAIN),
    ForgedExport("a second row of a run", _runs(_run_twice), Level.TABLES),
    ForgedExport("a row of a run that never was", _runs(_run_too_many), Level.TABLES),
    ForgedExport("two runs that changed places", _runs(_runs_swapped), Level.TABLES),
    ForgedExport("a run that was committed elsewhere", _runs(_run_elsewhere), Level.TABLES),
    ForgedExport("a plan too many", _invented_plan, Level.FILES),
    ForgedExport("a file too many", _file_too_many, Level.FILES),
)


def forge(root: Path, random: Random) -> ForgedExport:
    """Forge an export at random, and write its manifest anew."""
    forgery = random.choice(FORGERIES)
    forgery.forge(root, random)
    cover_up(root)
    return forgery
