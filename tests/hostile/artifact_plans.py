"""Valid plans that hostile ones are made of: the golden ones, and ones of our own with coverage and snapshots."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.hostile.artifact_files import Artifact, coverage_order, encode, lines_of, operation_id, sealed, with_ids
from tests.support.plans import CONFIG_VERSION, CREATED_AT, GOLDEN, GOLDEN_NAMES, RUN_ID, write_snapshot

__all__ = ["CONFIG_VERSION", "RUN_ID"]

DESTINATION_ID = "18d52a8a-7e7d-9bf5-3967-c51149d169da"
_PROVIDERS = {"source": "jsonl", "destination": "infrahub"}
_ENTRY = {"index": 0, "name": "tags"}
SNAPSHOT = "A/BuiltinTag.parquet"


def record(action: str, kind: str, identity: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An operation's record with its identifier; identity parts go into the payload unless a relationship has them."""
    fields = {reference["field"] for reference in more.get("relationships", ())}
    values = {"action": action, "identity": identity, "kind": kind, "tier": 0, **more}
    if action != "delete":
        own = {name: value for name, value in identity.items() if name not in fields}
        values["payload"] = {**own, **more.get("payload", {})}
    if action == "update":
        values.setdefault("destination_id", DESTINATION_ID)
    return {**values, "operation_id": operation_id(action, kind, identity)}


def reference(field: str, peer_kind: str, *peers: dict[str, Any], many: bool = False) -> dict[str, Any]:
    """A relationship of a record."""
    cardinality = "many" if many else "one"
    return {"cardinality": cardinality, "field": field, "peer_kind": peer_kind, "peers": list(peers)}


def operations() -> list[dict[str, Any]]:
    """A small plan with every shape: creates, an update, a delete, references one and many, nested identities."""
    site = {"identity": {"name": "dc1"}, "peer_kind": "LabSite"}
    return [
        record("create", "BuiltinTag", {"name": "prod"}, payload={"description": "a\u2028b \u00e9 \U0001f600"}),
        record("create", "LabSite", {"name": "dc1"}),
        record(
            "create",
            "LabRack",
            {"name": "r1", "site": site},
            tier=1,
            relationships=[reference("site", "LabSite", {"name": "dc1"})],
        ),
        record(
            "create",
            "LabDevice",
            {"name": "sw1"},
            tier=2,
            payload={"mtu": 9000, "enabled": False, "extra": {"a": [1, 1.5, None, {"b": {}}]}, "labels": ["x", "y"]},
            relationships=[
                reference("rack", "LabRack", {"name": "r1", "site": site}),
                reference("site", "LabSite", {"name": "dc1"}),
                reference("tags", "BuiltinTag", {"name": "prod"}, many=True),
            ],
        ),
        record("update", "LabSite", {"name": "dc2"}, payload={"description": "new"}, tier=1),
        record("delete", "BuiltinTag", {"name": "old"}),
    ]


def coverage_of(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A coverage line for each operation, one resource that is unchanged and one that was left out."""
    actions = {"create": "create", "update": "update", "delete": "remove"}
    lines: list[dict[str, Any]] = []
    for found in records:
        line = {
            "action": actions[found["action"]],
            "entry": _ENTRY,
            "identity": found["identity"],
            "kind": found["kind"],
            "operation_id": found["operation_id"],
            "providers": _PROVIDERS,
            "tier": found["tier"],
        }
        if found["action"] != "create":
            line["destination_id"] = DESTINATION_ID
        if found["action"] == "update":
            line["differences"] = {"description": {"desired": "new", "observed": None}}
        lines.append(line)
    rest = {"entry": _ENTRY, "kind": "BuiltinTag", "providers": _PROVIDERS, "tier": 0}
    lines.append({**rest, "action": "none", "destination_id": DESTINATION_ID, "identity": {"name": "same"}})
    lines.append({**rest, "action": "skip", "identity": {"name": "odd"}, "reason": "no name"})
    return sorted(lines, key=coverage_order)


def manifest(**changes: Any) -> dict[str, Any]:
    """A manifest without counts and checksum."""
    return {
        "config_version": CONFIG_VERSION,
        "created_at": CREATED_AT.isoformat(),
        "delete_operations_computed": True,
        "destination_binding": {"branch": "main", "url": "http://infrahub.example:8000"},
        "format_version": 3,
        "run_id": RUN_ID,
        "source": "from-netbox",
        "source_snapshot": [],
        **changes,
    }


def made_of(
    records: list[dict[str, Any]],
    coverage: list[dict[str, Any]] | None = None,
    snapshots: dict[str, bytes] | None = None,
    **changes: Any,
) -> Artifact:
    """A whole artifact of these records, sealed."""
    told = None if coverage is None else lines_of(coverage)
    bare = Artifact(encode(manifest(**changes)), lines_of(with_ids(records)), told, snapshots or {})
    return sealed(bare)


@cache
def golden_plan(name: str) -> Artifact:
    """One of the golden plans, with its snapshot."""
    return Artifact.of(GOLDEN / name)


@cache
def snapshot_bytes() -> tuple[bytes, dict[str, Any]]:
    """A snapshot and its record, made by the product."""
    with tempfile.TemporaryDirectory(prefix="apply-ledger-hostile-") as folder:
        run_dir = Path(folder)
        (run_dir / "A").mkdir()
        found = write_snapshot(run_dir, {"0": "prod", "1": "\u00e9"})
        return (run_dir / SNAPSHOT).read_bytes(), dict(found)


@cache
def plain_plan() -> Artifact:
    """Operations alone: no coverage, bound to no snapshot."""
    return made_of(operations())


@cache
def accounted_plan() -> Artifact:
    """With coverage, bound to no snapshot."""
    return made_of(operations(), coverage_of(operations()))


@cache
def covered_plan() -> Artifact:
    """With coverage and a snapshot."""
    data, found = snapshot_bytes()
    return made_of(operations(), coverage_of(operations()), {SNAPSHOT: data}, source_snapshot=[found])


@cache
def seeds(*, with_snapshots: bool) -> tuple[Artifact, ...]:
    """What the fuzzer starts from; reading a snapshot costs a process, so most cases are bound to none."""
    covered = accounted_plan()
    empty = made_of([], [])
    one = made_of([record("create", "BuiltinTag", {"name": "a"})])
    if not with_snapshots:
        bare = [sealed(golden_plan(name), source_snapshot=[]) for name in GOLDEN_NAMES]
        return (plain_plan(), covered, covered, empty, one, *bare)
    return (covered_plan(), *(golden_plan(name) for name in GOLDEN_NAMES))
