"""Saved plans with the commit that names them, for the writer's tests."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy, commit_id
from ledger.plan.model import PlannedOperation
from ledger.plan.reader import read_raw_artifact
from ledger.plan.writer import write_plan_artifact
from tests.support.operations import create, delete, update

BINDING = DestinationBinding(url="http://infrahub.example:8000", branch="main")
SOURCE = "from-netbox"
CONFIG_VERSION = "5f2c9b1e7a4d3c8f"
CREATED_AT = datetime(2026, 11, 29, 18, 0, tzinfo=UTC)


def tag(name: str, **fields: Any) -> PlannedOperation:
    """A create of a tag."""
    return create("BuiltinTag", {"name": name}, {"name": name, **fields})


def changed_tag(name: str, destination_id: str, **fields: Any) -> PlannedOperation:
    """An update of a tag."""
    return update("BuiltinTag", {"name": name}, {"name": name, **fields}, destination_id=destination_id)


def gone_tag(name: str) -> PlannedOperation:
    """A recorded delete of a tag."""
    return delete("BuiltinTag", {"name": name})


def port(name: str, **fields: Any) -> PlannedOperation:
    """A create of a kind that is keyed by a constraint alone."""
    return create("LabPortTemplate", {"name": name}, {"name": name, **fields})


def in_order(operations: Sequence[PlannedOperation]) -> list[PlannedOperation]:
    """Operations in the order in which they are stored and applied; tiers follow the given order."""
    return [operation.model_copy(update={"tier": tier}) for tier, operation in enumerate(operations)]


def save(
    root: Path,
    run_id: str,
    operations: Sequence[PlannedOperation],
    *,
    source: str | None = SOURCE,
    binding: DestinationBinding | None = BINDING,
    created_at: datetime = CREATED_AT,
    coverage: tuple[list[bytes], dict[str, int]] | None = None,
) -> Path:
    """Write the artifact of a run below ``root`` and return its run directory."""
    run_dir = root / "sync" / run_id
    run_dir.mkdir(parents=True)
    write_plan_artifact(
        run_dir,
        operations=operations,
        coverage_lines=None if coverage is None else coverage[0],
        coverage_counts=None if coverage is None else coverage[1],
        run_id=run_id,
        created_at=created_at,
        config_version=CONFIG_VERSION,
        source=source,
        binding=binding,
        source_snapshot=[],
        delete_operations_computed=True,
    )
    return run_dir


def commit_of(
    root: Path,
    run_dir: Path,
    *,
    binding: DestinationBinding = BINDING,
    policy: Policy | None = None,
    ledger_position: int | None = 0,
    **changes: Any,
) -> PlanCommit:
    """The commit of a saved plan, as the committer makes it; ``changes`` overrides fields."""
    from ledger.plan.reader import parse_artifact

    raw = read_raw_artifact(run_dir)
    manifest = parse_artifact(raw).manifest
    fields: dict[str, Any] = {
        "commit_id": commit_id(manifest.run_id, manifest.plan_checksum),
        "run_id": manifest.run_id,
        "binding": binding.normalised(),
        "plan_checksum": manifest.plan_checksum,
        "artifact_digest": raw.artifact_digest,
        "format_version": manifest.format_version,
        "operations_count": manifest.operations_count,
        "config_version": CONFIG_VERSION,
        "source": manifest.source or SOURCE,
        "artifact": run_dir.relative_to(root).as_posix(),
        "ledger_position": ledger_position,
        "actor": "ada",
        "policy": policy or Policy(),
        "committed_at": "2026-11-29T18:05:00.000000+00:00",
    }
    return PlanCommit(**(fields | changes))
