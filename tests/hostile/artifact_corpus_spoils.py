"""How the cases of the corpus spoil a run directory in which a valid plan stands: by hand, and sealed again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.hostile.artifact_files import Artifact, encode, lines_of, records_of, sealed
from tests.hostile.artifact_plans import operations, record
from tests.hostile.artifact_repairs import rewritten

Spoil = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Hostile:
    """One case. ``finding`` is the name of a finding that must be among those of the refusal."""

    name: str
    spoil: Spoil
    finding: str
    refusal: str = "RunRefusedError"


def on_bytes(file: str, change: Callable[[bytes], bytes]) -> Spoil:
    """Change the bytes of one file and nothing else."""

    def spoil(run_dir: Path) -> None:
        (run_dir / file).write_bytes(change((run_dir / file).read_bytes()))

    return spoil


def on_artifact(change: Callable[[Artifact], Artifact]) -> Spoil:
    """Change the artifact as a whole."""

    def spoil(run_dir: Path) -> None:
        change(Artifact.of(run_dir)).write(run_dir)

    return spoil


def with_operations(data: bytes, **changes: Any) -> Spoil:
    """Other operations, in a plan that fits them and has no coverage."""
    return on_artifact(lambda start: sealed(replace(start, operations=data, coverage=None), coverage=..., **changes))


def with_records(*records: Any, **changes: Any) -> Spoil:
    """These operations, canonical; nothing else is repaired."""
    return with_operations(lines_of(list(records)), **changes)


def with_line(text: bytes) -> Spoil:
    """One line in the place of all operations."""
    return with_operations(text + b"\n")


def with_value(value: bytes) -> Spoil:
    """A plan of one create whose description is this JSON text."""
    return with_line(TAG_LINE.replace(b'"@"', value))


def with_manifest(**changes: Any) -> Spoil:
    """Other manifest keys under a right checksum; ``...`` leaves a key out."""
    return on_artifact(lambda start: sealed(start, **changes))


def with_coverage(change: Callable[[list[Any]], list[Any]]) -> Spoil:
    """Other coverage lines under a right digest, counts and checksum."""
    return on_artifact(lambda start: sealed(replace(start, coverage=lines_of(change(records_of(start.coverage))))))


def with_coverage_bytes(change: Callable[[bytes], bytes]) -> Spoil:
    """Other coverage bytes under a right digest, counts and checksum."""
    return on_artifact(lambda start: sealed(replace(start, coverage=change(start.coverage or b""))))


def changed(index: int, **changes: Any) -> Spoil:
    """One operation with other keys, under its right identifier and place."""

    def change(start: Artifact) -> Artifact:
        records = operations()
        found = {**records[index], **changes}
        records[index] = {name: value for name, value in found.items() if value is not ...}
        return rewritten(replace(start, operations=lines_of(records), coverage=None), chance=_NO_CHANCE)

    return on_artifact(lambda start: sealed(replace(change(start), coverage=None), coverage=...))


_NO_CHANCE: Any = None
TAG_LINE = encode(record("create", "BuiltinTag", {"name": "a"}, payload={"description": "@"}))
"""A create whose description is there to be replaced."""
