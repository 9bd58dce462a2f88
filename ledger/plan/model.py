"""The records of a plan artifact: operations and manifest (A23 to A67).

Records are strict: nothing is coerced, and an operation with an unknown key is refused (C31). The manifest keeps keys
that it does not know, because they are inside the checksum (A67).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ledger.binding import DestinationBinding
from ledger.plan.canonical import Identity, canonical_json_bytes, operation_id

FORMAT_VERSION = 3
READABLE_FORMATS = frozenset({2, 3})
APPLICABLE_FORMATS = frozenset({3})

Action = Literal["create", "update", "delete"]
ACTIONS: tuple[Action, ...] = ("create", "update", "delete")
CHECKSUM_EXCLUDED = ("plan_checksum", "run_id", "created_at")

OperationId = Annotated[str, Field(pattern=r"^op_[0-9a-f]{16}$")]
Sha256Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ConfigVersion = Annotated[str, Field(pattern=r"^[\x21-\x7e]+$")]


class RelationshipReference(BaseModel):
    """Peers of one relationship, by kind and identity, never by an id of the destination (A47, C19)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    field: str
    peer_kind: str
    cardinality: Literal["one", "many"]
    peers: list[Identity]

    @model_validator(mode="after")
    def _one_has_one(self) -> Self:
        if self.cardinality == "one" and len(self.peers) != 1:
            raise ValueError(f"relationship {self.field!r} has cardinality one and {len(self.peers)} peers (A34)")
        return self


class PlannedOperation(BaseModel):
    """One change to one object. ``tier`` orders writes; ``destination_id`` keys an update (P24) and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    operation_id: OperationId
    action: Action
    kind: str
    identity: Identity
    tier: int = Field(ge=0)
    payload: dict[str, Any] | None = None
    relationships: list[RelationshipReference] | None = None
    destination_id: str | None = None

    @model_validator(mode="after")
    def _shape(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> list[str]:
        problems = [*self._key_problems(), *self._action_problems()]
        if self.relationships is not None and not self.relationships:
            problems.append("relationships is present and empty; it must be left out (A29)")
        fields = [reference.field for reference in self.relationships or ()]
        problems += [f"relationship {name!r} occurs twice" for name in sorted(set(fields)) if fields.count(name) > 1]
        if self.action != "delete":
            problems += self._identity_problems()
        return problems

    def _key_problems(self) -> list[str]:
        if self.operation_id != operation_id(self.action, self.kind, self.identity):
            return ["operation_id does not match action, kind and identity (A56)"]
        return []

    def _action_problems(self) -> list[str]:
        problems = []
        if self.action == "delete" and self.payload is not None:
            problems.append("a delete carries no payload (A28)")
        if self.action != "delete" and self.payload is None:
            problems.append(f"a {self.action} needs a payload (A28)")
        if self.action == "update" and self.destination_id is not None and not self.destination_id.strip():
            problems.append("destination_id is blank")
        if self.action != "update" and self.destination_id is not None:
            problems.append(f"a {self.action} carries no destination_id (A41)")
        return problems

    def _identity_problems(self) -> list[str]:
        """Every identity component has exactly one write source, and it says the same bytes (A38, A39, A46)."""
        payload = self.payload or {}
        references = {reference.field: reference for reference in self.relationships or ()}
        problems = [
            f"field {name!r} is in the payload and in a relationship (A39)" for name in references if name in payload
        ]
        for name, recorded in self.identity.items():
            if name in payload:
                written: Any = payload[name]
            elif name in references:
                pairs = [{"identity": peer, "peer_kind": references[name].peer_kind} for peer in references[name].peers]
                written = pairs[0] if references[name].cardinality == "one" else pairs
            else:
                problems.append(f"identity component {name!r} is neither in the payload nor in a relationship (A46)")
                continue
            if canonical_json_bytes(written) != canonical_json_bytes(recorded):
                problems.append(f"identity component {name!r} differs from the value that would be written (A46)")
        return problems

    def record(self) -> dict[str, Any]:
        """The record as it stands in a plan line: absent keys left out, not null."""
        return self.model_dump(
            mode="python",
            exclude_none=False,
            exclude={name for name in type(self).model_fields if getattr(self, name) is None},
        )

    def line(self) -> bytes:
        """The canonical line with its newline (A14, A15)."""
        return canonical_json_bytes(self.record()) + b"\n"


class SourceSnapshotRecord(BaseModel):
    """One source snapshot that the plan is bound to (A61)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    path: str
    digest: Sha256Hex
    row_count: int = Field(ge=0)


class CoverageRecord(BaseModel):
    """What the manifest says of ``plan/coverage.jsonl``: digest of its bytes and a count for each action (H12)."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    digest: Sha256Hex
    counts: dict[str, int]


class PlanManifest(BaseModel):
    """The header of a plan. Keys that are not declared here are kept, and are inside the checksum (A67)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    format_version: int
    run_id: str
    created_at: str
    config_version: ConfigVersion
    source_snapshot: list[SourceSnapshotRecord]
    operations_count: int = Field(ge=0)
    delete_operations_computed: bool
    plan_checksum: Sha256Hex
    destination_binding: DestinationBinding | None = None
    source: str | None = None
    coverage: CoverageRecord | None = None
