"""Plan artifacts for tests: the golden ones, small ones of our own, and raw ones with any bytes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ledger.binding import DestinationBinding
from ledger.plan.canonical import canonical_json_bytes, operation_id
from ledger.plan.checksum import plan_checksum
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.model import Action, PlanManifest, PlannedOperation, SourceSnapshotRecord
from ledger.plan.snapshot import ColumnType, SnapshotWriter
from ledger.plan.writer import write_plan_artifact

GOLDEN = Path(__file__).parent.parent / "data" / "golden-plan"
GOLDEN_NAMES = ("golden-one-create", "every-shape")
RUN_ID = "20260726T1804-9f3ac210"
CONFIG_VERSION = "5f2c9b1e7a4d3c8f"
CREATED_AT = datetime(2026, 7, 26, 18, 4, 11, 512034, tzinfo=UTC)
BINDING = DestinationBinding(url="http://infrahub.example:8000", branch="main")


def golden_copy(name: str, target: Path) -> Path:
    """A golden run under its own run id, free to be damaged."""
    run_dir = target / RUN_ID
    shutil.copytree(GOLDEN / name, run_dir)
    return run_dir


def record(action: str = "create", kind: str = "BuiltinTag", **changes: Any) -> dict[str, Any]:
    """The record of a valid operation; a change of ``identity`` is carried into the payload and the id."""
    identity = changes.pop("identity", {"name": "prod"})
    values: dict[str, Any] = {"action": action, "identity": identity, "kind": kind, "tier": 0}
    if action != "delete":
        values["payload"] = dict(identity)
    if action == "update":
        values["destination_id"] = "18d52a8a-7e7d-9bf5-3967-c51149d169da"
    values["operation_id"] = operation_id(action, kind, identity)
    return {**values, **changes}


def operation(action: Action = "create", kind: str = "BuiltinTag", **changes: Any) -> PlannedOperation:
    """A valid operation as a program would make it."""
    return PlannedOperation.model_validate(record(action, kind, **changes))


def tags(*names: str, tier: int = 0) -> list[PlannedOperation]:
    """Creates of tags of these names."""
    return [operation(identity={"name": name}, tier=tier) for name in names]


def write_plan(
    root: Path,
    operations: Iterable[PlannedOperation],
    *,
    run_id: str = RUN_ID,
    created_at: datetime = CREATED_AT,
    snapshot_rows: Mapping[str, str] | None = None,
    **changes: Any,
) -> tuple[Path, PlanManifest]:
    """Write a run with one snapshot below ``root`` through the writer of the product."""
    run_dir = root / run_id
    (run_dir / "A").mkdir(parents=True)
    snapshot = write_snapshot(run_dir, snapshot_rows if snapshot_rows is not None else {"0": "prod"})
    arguments: dict[str, Any] = {
        "operations": operations,
        "coverage_lines": None,
        "coverage_counts": None,
        "run_id": run_id,
        "created_at": created_at,
        "config_version": CONFIG_VERSION,
        "source": "from-netbox",
        "binding": BINDING,
        "source_snapshot": [snapshot],
        "delete_operations_computed": True,
    }
    return run_dir, write_plan_artifact(run_dir, **{**arguments, **changes})


def write_snapshot(run_dir: Path, names: Mapping[str, str], kind: str = "BuiltinTag") -> SourceSnapshotRecord:
    """A snapshot of tags by source id."""
    with SnapshotWriter(run_dir / "A" / f"{kind}.parquet", kind=kind, columns={"name": ColumnType.TEXT}) as writer:
        for source_id, name in names.items():
            writer.write(source_id, {"name": name})
        return writer.close()


def manifest_document(operations_bytes: bytes, **changes: Any) -> dict[str, Any]:
    """A manifest that fits these operation bytes, without snapshots; a change to ``...`` leaves a key out."""
    document = {
        "config_version": CONFIG_VERSION,
        "created_at": CREATED_AT.isoformat(),
        "delete_operations_computed": True,
        "destination_binding": {"branch": "main", "url": "http://infrahub.example:8000"},
        "format_version": 3,
        "operations_count": operations_bytes.count(b"\n"),
        "run_id": RUN_ID,
        "source_snapshot": [],
        **changes,
    }
    document = {name: value for name, value in document.items() if value is not ...}
    return {"plan_checksum": plan_checksum(document, operations_bytes), **document}


def raw_run(root: Path, operations_bytes: bytes | None, manifest: Mapping[str, Any] | bytes | None = None) -> Path:
    """A run with exactly these bytes; the manifest fits them unless one is given."""
    run_dir = root / RUN_ID
    (run_dir / "plan").mkdir(parents=True)
    if operations_bytes is not None:
        (run_dir / OPERATIONS_FILE).write_bytes(operations_bytes)
    if not isinstance(manifest, bytes):
        document = manifest if manifest is not None else manifest_document(operations_bytes or b"")
        manifest = json.dumps(document).encode()
    (run_dir / MANIFEST_FILE).write_bytes(manifest)
    return run_dir


def line(values: Mapping[str, Any]) -> bytes:
    """The canonical line of a record, valid or not."""
    return canonical_json_bytes(values) + b"\n"
