"""What an attacker who knows the format does after he changed something, so that only deeper checks can notice."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.hostile.artifact_files import (
    Artifact,
    coverage_order,
    lines_of,
    operation_id,
    records_of,
    sealed,
    with_ids,
)

_OF_COVERAGE = {"create": "create", "update": "update", "remove": "delete"}


def left_as_it_is(artifact: Artifact, chance: Random) -> Artifact:
    """Nothing is repaired."""
    return artifact


def resealed(artifact: Artifact, chance: Random) -> Artifact:
    """Counts, digests and checksum fit the bytes, whatever those are."""
    return sealed(artifact)


def checksum_alone(artifact: Artifact, chance: Random) -> Artifact:
    """The checksum fits; the count stays what it was."""
    return sealed(artifact, operations_count=artifact.document.get("operations_count"))


def rewritten(artifact: Artifact, chance: Random) -> Artifact:
    """Every readable line is canonical, has its right identifier and its place; then everything is sealed."""
    operations = lines_of(with_ids(records_of(artifact.operations)))
    told = artifact.coverage
    if told is not None:
        told = lines_of(sorted(map(_with_id, records_of(told)), key=coverage_order))
    return sealed(replace(artifact, operations=operations, coverage=told))


def _with_id(line: Any) -> Any:
    if not isinstance(line, dict) or "operation_id" not in line:
        return line
    action = _OF_COVERAGE.get(line["action"]) if isinstance(line.get("action"), str) else None
    return {**line, "operation_id": operation_id(action, line.get("kind"), line.get("identity"))}


def identity_written(artifact: Artifact, chance: Random) -> Artifact:
    """As :func:`rewritten`, and the payload says what the identity says."""
    records = []
    for record in records_of(artifact.operations):
        if isinstance(record, dict) and isinstance(record.get("identity"), dict):
            references = record.get("relationships")
            fields = (
                {r.get("field") for r in references if isinstance(r, dict) and isinstance(r.get("field"), str)}
                if isinstance(references, list)
                else set()
            )
            own = {name: value for name, value in record["identity"].items() if name not in fields}
            if isinstance(record.get("payload"), dict):
                record["payload"] = {**record["payload"], **own}
        records.append(record)
    return rewritten(replace(artifact, operations=lines_of(records)), chance)


def covered(artifact: Artifact, chance: Random) -> Artifact:
    """As :func:`rewritten`, without any coverage: nothing left that could disagree."""
    bare = rewritten(replace(artifact, coverage=None), chance)
    return sealed(bare, coverage=...)


REPAIRS = (left_as_it_is, resealed, resealed, checksum_alone, rewritten, rewritten, identity_written, covered)
