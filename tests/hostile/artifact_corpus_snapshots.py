"""Snapshots that are refused: torn, exchanged, made of claims, or made to be unpacked."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hostile.artifact_corpus_files import in_place_of, listening_socket, loop, outward, pipe, sparse, to_nothing
from tests.hostile.artifact_corpus_spoils import Hostile, Spoil, on_artifact, on_bytes
from tests.hostile.artifact_files import Artifact, sealed
from tests.hostile.artifact_plans import SNAPSHOT

_UNREADABLE = "PlanArtifactUnreadableError"


def _bytes(change: Callable[[bytes], bytes]) -> Spoil:
    return on_bytes(SNAPSHOT, change)


def recorded(**changes: Any) -> Spoil:
    """Another record of the snapshot, under a right checksum."""

    def change(start: Artifact) -> Artifact:
        (record,) = start.document["source_snapshot"]
        return sealed(start, source_snapshot=[{**record, **changes}])

    return on_artifact(change)


def made_of(table: Callable[[], pa.Table], **options: Any) -> Spoil:
    """Another Parquet file in the snapshot's place."""

    def change(start: Artifact) -> Artifact:
        file = io.BytesIO()
        pq.write_table(table(), file, **options)
        return replace(start, snapshots={SNAPSHOT: file.getvalue()})

    return on_artifact(change)


def _namesakes() -> pa.Table:
    return pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"])


def _no_text() -> pa.Array:
    return pa.array([b"\xff"]).view(pa.string())


def _one(values: Any) -> Callable[[], pa.Table]:
    return lambda: pa.table({"name": values() if callable(values) else values})


def _nested(depth: int) -> pa.Array:
    array = pa.array([1])
    for _ in range(depth):
        array = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), array)
    return array


def _eight_gibibytes() -> pa.Array:
    """A thousand rows of one text of 8 MiB, which the file holds once, and compressed."""
    text = pa.array(["x" * (8 * 1024 * 1024)])
    return pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), text)


_UNPACKED = made_of(
    _one(_eight_gibibytes),
    compression="zstd",
    dictionary_pagesize_limit=64 * 1024 * 1024,
    store_schema=False,
    write_statistics=False,
)
_SAID = "source_snapshot"

SNAPSHOTS = (
    Hostile("half a snapshot", _bytes(lambda data: data[: len(data) // 2]), _SAID),
    Hostile("a snapshot without a byte", _bytes(lambda data: b""), _SAID),
    Hostile("a snapshot of zeros", _bytes(lambda data: b"\x00" * 4096), _SAID),
    Hostile("a footer without a table", _bytes(lambda data: b"PAR1" + b"\xff" * 8 + b"PAR1"), "source_snapshot"),
    Hostile(
        "a footer of four GiB",
        _bytes(lambda data: data[:-8] + b"\xff\xff\xff\xff" + b"PAR1"),
        "source_snapshot",
    ),
    Hostile("no snapshot", lambda run: (run / SNAPSHOT).unlink(), _SAID),
    Hostile("another digest", recorded(digest="0" * 64), _SAID),
    Hostile("another number of rows", recorded(row_count=3), _SAID),
    Hostile("true as the number of rows", recorded(row_count=True), _SAID),
    Hostile("an unknown key of a snapshot", recorded(note="x"), "manifest"),
    Hostile("a path upwards", recorded(path="A/../../../etc/passwd"), _SAID),
    Hostile("an absolute path", recorded(path="/etc/passwd"), _SAID),
    Hostile("a path with a zero byte", recorded(path="A/x\u0000y"), "format_version"),
    Hostile("a path of the other side", recorded(path="B/BuiltinTag.parquet"), _SAID),
    Hostile("a path of a hundred thousand parts", recorded(path="A/" + "a/" * 100_000 + "a"), _SAID),
    Hostile("a path of escapes", recorded(path="A/\x1b[2J\u202e"), _SAID),
    Hostile("a directory as snapshot", in_place_of(SNAPSHOT, Path.mkdir), _UNREADABLE, _UNREADABLE),
    Hostile("a pipe as snapshot", in_place_of(SNAPSHOT, pipe), _UNREADABLE, _UNREADABLE),
    Hostile("a socket as snapshot", in_place_of(SNAPSHOT, listening_socket), _UNREADABLE, _UNREADABLE),
    Hostile("a loop as snapshot", in_place_of(SNAPSHOT, loop), _UNREADABLE, _UNREADABLE),
    Hostile("a link to nothing as snapshot", in_place_of(SNAPSHOT, to_nothing), _UNREADABLE, _UNREADABLE),
    Hostile("a device as snapshot", in_place_of(SNAPSHOT, outward("/dev/zero")), _SAID),
    Hostile("a snapshot of one TiB", in_place_of(SNAPSHOT, sparse), _SAID),
    Hostile("other columns", made_of(_one(pa.array(["prod", "é"]))), _SAID),
    Hostile(
        "two columns of one name",
        made_of(_namesakes),
        "source_snapshot",
    ),
    Hostile("a time beyond all times", made_of(_one(pa.array([2**62], pa.timestamp("us")))), _SAID),
    Hostile("a day beyond all days", made_of(_one(pa.array([2**31 - 1], pa.date32()))), _SAID),
    Hostile("a zone that nobody knows", made_of(_one(pa.array([1], pa.timestamp("us", "Foo/Bar")))), _SAID),
    Hostile("NaN in a snapshot", made_of(_one(pa.array([float("nan")]))), _SAID),
    Hostile("bytes in a snapshot", made_of(_one(pa.array([b"\xff"]))), _SAID),
    Hostile(
        "text that is no UTF-8",
        made_of(_one(_no_text)),
        "source_snapshot",
    ),
    Hostile("sixty levels of lists", made_of(_one(lambda: _nested(60))), _SAID),
    Hostile("three hundred levels of lists", made_of(_one(lambda: _nested(300))), _SAID),
    Hostile(
        "25 million rows in a few bytes",
        made_of(_one(lambda: pa.nulls(25_000_000, pa.int8()))),
        "source_snapshot",
    ),
    Hostile("eight GiB in 512 bytes", _UNPACKED, _SAID),
)
