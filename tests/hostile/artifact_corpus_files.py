"""Files, paths and sizes that are refused: what stands in the place of a file, and how much of it."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hostile.artifact_corpus_spoils import (
    Hostile,
    Spoil,
    on_bytes,
    with_coverage_bytes,
    with_line,
    with_manifest,
    with_operations,
)
from tests.hostile.artifact_files import COVERAGE, MANIFEST, OPERATIONS

MIB = 1024 * 1024
_UNREADABLE = "PlanArtifactUnreadableError"
_OUTSIDE = "PathOutsideRunError"
_ABSENT = "PlanArtifactAbsentError"


def in_place_of(name: str, make: Spoil) -> Spoil:
    """Remove a file or a directory of the run, and make something else there."""

    def spoil(run_dir: Path) -> None:
        path = run_dir / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
        make(path)

    return spoil


def pipe(path: Path) -> None:
    """A FIFO: opening it for reading waits for a writer."""
    os.mkfifo(path)


def listening_socket(path: Path) -> None:
    """A socket. Its address is short, whatever the path is."""
    here = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"/proc/self/fd/{here}/{path.name}")
    finally:
        os.close(here)


def loop(path: Path) -> None:
    """A link to itself."""
    path.symlink_to(path.name)


def to_nothing(path: Path) -> None:
    """A link to nothing."""
    path.symlink_to("gone")


def outward(target: str) -> Spoil:
    """A link that leads out of the run."""
    return lambda path: path.symlink_to(target)


def sparse(path: Path) -> None:
    """A file of one TiB that takes no room."""
    with path.open("wb") as file:
        file.truncate(2**40)


def _cases(file: str) -> tuple[Hostile, ...]:
    kinds: tuple[tuple[str, Spoil, str], ...] = (
        ("a directory", Path.mkdir, _UNREADABLE),
        ("a pipe", pipe, _UNREADABLE),
        ("a socket", listening_socket, _UNREADABLE),
        ("a loop of links", loop, _UNREADABLE),
        ("a link to nothing", to_nothing, _UNREADABLE),
        ("a device", outward("/dev/zero"), _OUTSIDE),
        ("a link to another file", outward("/etc/passwd"), _OUTSIDE),
        ("a file of one TiB", sparse, _UNREADABLE),
    )
    return tuple(
        Hostile(f"{what} in the place of {file}", in_place_of(file, make), refusal, refusal)
        for what, make, refusal in kinds
    )


FILES = (
    *_cases(MANIFEST),
    *_cases(OPERATIONS),
    *_cases(COVERAGE),
    Hostile(
        "no plan at all", lambda run: shutil.rmtree(run / "plan"), "PlanArtifactAbsentError", "PlanArtifactAbsentError"
    ),
    Hostile("a file in the place of plan", in_place_of("plan", Path.touch), _UNREADABLE, _UNREADABLE),
    Hostile("a plan that is a loop", in_place_of("plan", loop), _UNREADABLE, _UNREADABLE),
    Hostile("a plan that is a link to nothing", in_place_of("plan", to_nothing), _UNREADABLE, _UNREADABLE),
    Hostile("a plan that is elsewhere", in_place_of("plan", outward("/etc")), _OUTSIDE, _OUTSIDE),
    Hostile("no operations", lambda run: (run / OPERATIONS).unlink(), "operations"),
    Hostile("operations without a byte", on_bytes(OPERATIONS, lambda data: b""), "operations"),
    Hostile("a run that is elsewhere", lambda run: _move_out(run), "ArtifactLocationError", "ArtifactLocationError"),
)


def _move_out(run_dir: Path) -> None:
    elsewhere = run_dir.parent.parent.with_name(f"{run_dir.parent.parent.name}-elsewhere")
    shutil.move(run_dir, elsewhere)
    run_dir.symlink_to(elsewhere)


def later(make: Callable[[], Spoil]) -> Spoil:
    """What is large is made when it is needed."""
    return lambda run_dir: make()(run_dir)


def _line(start: bytes, middle: bytes, times: int, end: bytes) -> Spoil:
    return later(lambda: with_line(start + middle * times + end))


def _operations(line: bytes, **changes: Any) -> Spoil:
    return later(lambda: with_operations(line * 2_000_000, **changes))


def _account(start: bytes, middle: bytes, times: int, end: bytes) -> Spoil:
    return with_coverage_bytes(lambda data: start + middle * times + end)


_PEERS = b'{"relationships":[{"peers":['
_MANY_SNAPSHOTS = later(lambda: with_manifest(source_snapshot=[{"path": f"A/{n}"} for n in range(100_000)]))
_MANY_COUNTS = later(lambda: with_manifest(coverage={"counts": {str(n): "x" for n in range(100_000)}}))
_LISTS_IN_MANIFEST = on_bytes(MANIFEST, lambda data: b'{"a":[' + b"[]," * (5 * MIB) + b"[]]}")
_LONG_MANIFEST = on_bytes(MANIFEST, lambda data: data + b" " * (40 * MIB))
_NONE = b'{"action":"none"'

SIZES = (
    Hostile("an operation of 64 MiB", _line(b'{"action":"', b"x", 64 * MIB, b'"}'), "LineTooLongError"),
    Hostile("an operation of 17 MiB", _line(b'{"action":"', b"x", 17 * MIB, b'"}'), "LineTooLongError"),
    Hostile("five million empty lists", _line(b'{"action":[', b"[],", 5 * MIB, b"[]]}"), "TooManyValuesError"),
    Hostile("a million peers", _line(_PEERS, b"1,", MIB, b"1]}]}"), "TooManyValuesError"),
    Hostile("as many peers as may be", _line(_PEERS, b"1,", 400_000, b"1]}]}"), "PlanOperationInvalidError"),
    Hostile("two million blank lines", _operations(b"\n"), "BlankLineError"),
    Hostile("two million empty records", _operations(b"{}\n"), "PlanOperationInvalidError"),
    Hostile("two million lines, and seven counted", _operations(b"{}\n", operations_count=7), "operations"),
    Hostile("two million coverage lines", _account(b"", _NONE + b"}\n", 2_000_000, b""), "CoverageInvalidError"),
    Hostile("a coverage line of 64 MiB", _account(_NONE, b" ", 64 * MIB, b"}\n"), "coverage"),
    Hostile(
        "a manifest of 40 MiB", on_bytes(MANIFEST, lambda data: data + b" " * (40 * MIB)), _UNREADABLE, _UNREADABLE
    ),
    Hostile("a manifest of empty lists", _LISTS_IN_MANIFEST, "format_version"),
    Hostile("a hundred thousand snapshots", _MANY_SNAPSHOTS, "source_snapshot"),
    Hostile("a hundred thousand counts", _MANY_COUNTS, "manifest"),
)
"""Cases that must cost little memory and little time, whatever they claim."""
