"""Operations, small schemas and saved plans for the tests of the plan's rules."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ledger.binding import DestinationBinding
from ledger.plan.canonical import canonical_json_bytes, operation_id
from ledger.plan.checksum import plan_checksum
from ledger.plan.coverage import CoverageLine, MappingEntry, Providers, counts, coverage_bytes
from ledger.plan.model import Action, PlannedOperation, RelationshipReference
from ledger.schema import Attribute, DestinationSchema, KeyPath, Kind, Relationship, parse_key_path, parse_schema

DATA = Path(__file__).parents[1] / "data"
DESTINATION_ID = "18d52a8a-7e7d-9bf5-3967-c51149d169da"
RUN_ID = "20261129T1804-9f3ac210"


def real_schema() -> DestinationSchema:
    """The schema of the real inventories."""
    return parse_schema(json.loads((DATA / "schema-api.json").read_bytes()))


def ref(field: str, peer_kind: str, *peers: dict[str, Any], many: bool = False) -> RelationshipReference:
    """A relationship reference; of cardinality one unless ``many``."""
    cardinality: Any = "many" if many else "one"
    return RelationshipReference(field=field, peer_kind=peer_kind, cardinality=cardinality, peers=list(peers))


def pair(peer_kind: str, **identity: Any) -> dict[str, Any]:
    """A reference as it stands in an identity."""
    return {"identity": identity, "peer_kind": peer_kind}


def operation(
    action: Action,
    kind: str,
    identity: dict[str, Any],
    payload: dict[str, Any] | None = None,
    references: Sequence[RelationshipReference] = (),
    *,
    tier: int = 0,
    destination_id: str | None = None,
) -> PlannedOperation:
    """A valid operation: identity components that are no references are put into the payload."""
    fields = {reference.field for reference in references}
    own = {name: value for name, value in identity.items() if name not in fields}
    return PlannedOperation(
        operation_id=operation_id(action, kind, identity),
        action=action,
        kind=kind,
        identity=identity,
        tier=tier,
        payload=None if action == "delete" else {**own, **(payload or {})},
        relationships=list(references) or None,
        destination_id=(destination_id or DESTINATION_ID) if action == "update" else None,
    )


def create(kind: str, identity: dict[str, Any], payload: dict[str, Any] | None = None, *references: Any) -> Any:
    """A create."""
    return operation("create", kind, identity, payload, references)


def update(kind: str, identity: dict[str, Any], payload: dict[str, Any] | None = None, *references: Any) -> Any:
    """An update keyed by a recorded id."""
    return operation("update", kind, identity, payload, references)


def kind(
    name: str,
    *,
    hfid: Iterable[str] = (),
    unique: Iterable[Iterable[str]] = (),
    attributes: Iterable[Attribute] = (),
    relationships: Iterable[Relationship] = (),
    inherit_from: tuple[str, ...] = (),
    is_node: bool = True,
) -> Kind:
    """A kind from schema paths."""
    by_name = {item.name: item for item in relationships}

    def paths(group: Iterable[str]) -> tuple[KeyPath, ...]:
        return tuple(parse_key_path(path, by_name) for path in group)

    return Kind(
        kind=name,
        is_node=is_node,
        human_friendly_id=paths(hfid),
        uniqueness_constraints=tuple(paths(group) for group in unique),
        attributes={item.name: item for item in attributes},
        relationships=by_name,
        inherit_from=inherit_from,
    )


def schema(*kinds: Kind) -> DestinationSchema:
    """A schema of these kinds."""
    return DestinationSchema(kinds={item.kind: item for item in kinds})


def coverage_line(action: Any, kind: str, identity: dict[str, Any], *, tier: int = 0, **fields: Any) -> CoverageLine:
    """A valid coverage line; the operation id and a destination id are filled in where the action has them."""
    operations = {"create": "create", "update": "update", "remove": "delete"}
    if action in operations:
        fields.setdefault("operation_id", operation_id(operations[action], kind, identity))
    if action in ("update", "remove", "none"):
        fields.setdefault("destination_id", DESTINATION_ID)
    fields.setdefault("entry", MappingEntry(index=0, name="extras.tags"))
    fields.setdefault("providers", Providers(source="jsonl", destination="infrahub"))
    return CoverageLine(kind=kind, identity=identity, action=action, tier=tier, **fields)


def save_plan(
    run_dir: Path,
    operations: Iterable[PlannedOperation],
    coverage: Sequence[CoverageLine] | None = None,
    **manifest: Any,
) -> Path:
    """Write an artifact as the format says, with a right checksum; ``manifest`` overrides its keys."""
    plan = run_dir / "plan"
    plan.mkdir(parents=True)
    ordered = sorted(operations, key=lambda item: (item.tier, item.operation_id))
    data = b"".join(item.line() for item in ordered)
    document: dict[str, Any] = {
        "format_version": 3,
        "run_id": RUN_ID,
        "created_at": "2026-11-29T18:04:11.512034+00:00",
        "config_version": "5f2c9b1e7a4d3c8f",
        "source": "from-netbox-demo",
        "source_snapshot": [],
        "operations_count": len(ordered),
        "delete_operations_computed": True,
        "destination_binding": DestinationBinding(url="http://infrahub.example:8000", branch="main").model_dump(),
    }
    if coverage is not None:
        account = b"".join(coverage_bytes(coverage))
        (plan / "coverage.jsonl").write_bytes(account)
        document["coverage"] = {"counts": counts(coverage), "digest": hashlib.sha256(account).hexdigest()}
    document |= manifest
    document.setdefault("plan_checksum", plan_checksum(document, data))
    (plan / "operations.jsonl").write_bytes(data)
    (plan / "manifest.json").write_bytes(canonical_json_bytes(document))
    return run_dir
