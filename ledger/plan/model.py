"""The records of a plan artifact: operations and manifest (A23 to A67).

Records are strict: nothing is coerced, and an operation with an unknown key is refused (C31). The manifest keeps keys
that it does not know, because they are inside the checksum (A67). A record made in a program is brought into canonical
form (values, order of peers); one that was decoded from a canonical line must have it already, so nothing is changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    model_validator,
)

from ledger.binding import QUERY_FINGERPRINT, DestinationBinding
from ledger.errors import ConfigurationError
from ledger.plan.canonical import (
    Identity,
    canonical_identity,
    canonical_json_bytes,
    canonical_operation_id,
    canonical_value,
    same_bytes,
)

FORMAT_VERSION = 3
READABLE_FORMATS = frozenset({2, 3})
APPLICABLE_FORMATS = frozenset({3})

Action = Literal["create", "update", "delete"]
ACTIONS: tuple[Action, ...] = ("create", "update", "delete")
CHECKSUM_EXCLUDED = ("plan_checksum", "run_id", "created_at")
REGISTRY_KEYS = ("config_id", "registry_version", "package_checksum")
"""Manifest keys of infrahub-sync's package registry: checked when read, never written here (design 4.2)."""

DECODED: Final[Mapping[str, bool]] = {"decoded": True}
"""Validation context of records that come from canonical lines: their values are canonical, nothing is rewritten."""

OperationId = Annotated[str, Field(pattern=r"^op_[0-9a-f]{16}$")]
Sha256Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ConfigVersion = Annotated[str, Field(pattern=r"^[\x20-\x7e]+$")]
NonEmptyText = Annotated[str, Field(min_length=1)]

MAX_KEYS: Final = 64
"""Keys of a record whose keys the format fixes. Each key too many costs a thousand bytes to be named."""


def few_keys(value: Any) -> Any:
    """``value`` unchanged.

    Raises:
        ValueError: a mapping with more keys than any record of the format has.
    """
    if isinstance(value, Mapping) and len(value) > MAX_KEYS:
        raise ValueError(f"it has {len(value):,} keys")
    return value


# Values may be secrets of a foreign plan, so no message of a validation quotes its input (G12).
_CLOSED = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


def _is_decoded(info: ValidationInfo) -> bool:
    return bool(info.context and info.context.get("decoded"))


class RelationshipReference(BaseModel):
    """Peers of one relationship, by kind and identity, never by an id of the destination (A47, C19).

    ``peers`` of cardinality many are a set: ordered by their canonical bytes, each once (A21). An empty list means
    that the destination's set is to be empty (A32).
    """

    model_config = _CLOSED

    field: NonEmptyText
    peer_kind: NonEmptyText
    cardinality: Literal["one", "many"]
    # Of a list the first fault is named: a fault costs a thousand bytes, an item may cost two.
    peers: Annotated[list[Identity], Field(fail_fast=True)]

    @model_validator(mode="before")
    @classmethod
    def _bring_into_canonical_form(cls, data: Any, info: ValidationInfo) -> Any:
        if _is_decoded(info) or not isinstance(data, Mapping) or not isinstance(data.get("peers"), list):
            return data
        kind = str(data.get("peer_kind"))
        peers = [canonical_value(peer, kind=kind, field=str(data.get("field"))) for peer in data["peers"]]
        if data.get("cardinality") == "many":
            peers = list({canonical_json_bytes(peer): peer for peer in peers}.values())
            peers.sort(key=canonical_json_bytes)
        return {**data, "peers": peers}

    @model_validator(mode="after")
    def _peers_fit(self) -> Self:
        if self.cardinality == "one" and len(self.peers) != 1:
            raise ValueError(f"relationship {self.field!r} has cardinality one and {len(self.peers)} peers")  # A34
        if not all(self.peers):
            raise ValueError(f"relationship {self.field!r} has a peer with an empty identity")
        if len(self.peers) > 1:
            encoded = [canonical_json_bytes(peer) for peer in self.peers]
            if any(one >= other for one, other in pairwise(encoded)):
                raise ValueError(f"the peers of {self.field!r} are not ordered by canonical bytes, each once")  # A21
        return self


class PlannedOperation(BaseModel):
    """One change to one object. ``tier`` orders writes; ``destination_id`` keys an update (P24) and nothing else."""

    model_config = _CLOSED

    operation_id: OperationId
    action: Action
    kind: NonEmptyText
    identity: Identity
    tier: int = Field(ge=0)
    payload: dict[str, Any] | None = None
    relationships: (
        Annotated[list[Annotated[RelationshipReference, BeforeValidator(few_keys)]], Field(fail_fast=True)] | None
    ) = None
    destination_id: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _bring_into_canonical_form(cls, data: Any, info: ValidationInfo) -> Any:
        if not isinstance(few_keys(data), Mapping):
            return data
        if _is_decoded(info):
            for name in ("payload", "relationships", "destination_id"):
                if name in data and data[name] is None:
                    raise ValueError(f"{name} is null; where it has no value it is left out")  # A28, A29
            return data
        kind = str(data.get("kind"))
        canonical = dict(data)
        for name in ("identity", "payload"):
            if isinstance(data.get(name), Mapping):
                canonical[name] = canonical_identity(data[name], kind=kind)
        return canonical

    @model_validator(mode="after")
    def _shape(self) -> Self:
        problems = self._problems()
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> list[str]:
        problems = [*self._key_problems(), *self._action_problems()]
        if self.relationships is not None and not self.relationships:
            problems.append("relationships is present and empty; it must be left out")  # A29
        fields = Counter(reference.field for reference in self.relationships or ())
        problems += [f"relationship {name!r} occurs twice" for name in sorted(fields) if fields[name] > 1]
        if self.action != "delete":
            problems += self._identity_problems()
        return problems

    def _key_problems(self) -> list[str]:
        if not self.identity:
            return ["identity is empty; it names no object"]  # A26
        if self.operation_id != canonical_operation_id(self.action, self.kind, self.identity):
            return ["operation_id does not match action, kind and identity"]  # A56
        return []

    def _action_problems(self) -> list[str]:
        problems = []
        if self.action == "delete" and self.payload is not None:
            problems.append("a delete carries no payload")  # A28
        if self.action != "delete" and self.payload is None:
            problems.append(f"a {self.action} needs a payload")  # A28
        if self.action == "update" and self.destination_id is not None and not self.destination_id.strip():
            problems.append("destination_id is blank")
        if self.action != "update" and self.destination_id is not None:
            problems.append(f"a {self.action} carries no destination_id")  # A41
        return problems

    def _identity_problems(self) -> list[str]:
        """Every identity component has exactly one write source, and it says the same bytes (A38, A39, A46)."""
        payload = self.payload or {}
        references = {reference.field: reference for reference in self.relationships or ()}
        problems = [f"field {name!r} is in the payload and in a relationship" for name in references if name in payload]
        for name, recorded in self.identity.items():
            if name in payload:
                written: Any = payload[name]
            elif name in references:
                pairs = [{"identity": peer, "peer_kind": references[name].peer_kind} for peer in references[name].peers]
                written = pairs[0] if references[name].cardinality == "one" else pairs
            else:
                problems.append(f"identity component {name!r} is neither in the payload nor in a relationship")  # A46
                continue
            if not same_bytes(written, recorded):
                problems.append(f"identity component {name!r} differs from the value that would be written")  # A46
        return problems

    def record(self) -> dict[str, Any]:
        """The record as it is in a plan line: absent keys left out, not null."""
        values: dict[str, Any] = {name: value for name, value in self if value is not None}
        if self.relationships is not None:
            values["relationships"] = [dict(reference) for reference in self.relationships]
        return values

    def line(self) -> bytes:
        """The canonical line with its newline (A14, A15)."""
        return canonical_json_bytes(self.record()) + b"\n"


class SourceSnapshotRecord(BaseModel):
    """One source snapshot that the plan is bound to (A61). ``row_count`` counts the rows under ``digest``."""

    model_config = _CLOSED

    path: NonEmptyText
    digest: Sha256Hex
    row_count: int = Field(ge=0)


class CoverageRecord(BaseModel):
    """What the manifest says of ``plan/coverage.jsonl``: digest of its bytes and a count for each action (H12)."""

    model_config = _CLOSED

    digest: Sha256Hex
    counts: Annotated[dict[str, Annotated[int, Field(ge=0)]], BeforeValidator(few_keys)]


def _require_utc(value: str) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("it is not a time in ISO 8601") from None  # A59
    if moment.utcoffset() != timedelta(0):
        raise ValueError("it is not a time in UTC")  # A59
    return value


def _require_no_credentials(binding: DestinationBinding) -> DestinationBinding:
    """A recorded address must not hold what would then be stored and shown (C24 to C26)."""
    try:
        binding.normalised()
        parts = urlsplit(binding.url)
    except (ConfigurationError, ValueError):
        raise ValueError("url is not an absolute http or https URL") from None  # A64
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ValueError("url holds user information or a fragment")  # C24
    if parts.query and not QUERY_FINGERPRINT.fullmatch(parts.query):
        raise ValueError("url holds a query that is not a fingerprint")  # C25
    return binding


class PlanManifest(BaseModel):
    """The header of a plan. Keys that are not declared here are kept, and are inside the checksum (A67)."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, hide_input_in_errors=True)

    format_version: int
    run_id: str
    created_at: Annotated[str, AfterValidator(_require_utc)]
    config_version: ConfigVersion
    source_snapshot: Annotated[list[Annotated[SourceSnapshotRecord, BeforeValidator(few_keys)]], Field(fail_fast=True)]
    operations_count: int = Field(ge=0)
    delete_operations_computed: bool
    plan_checksum: Sha256Hex
    destination_binding: (
        Annotated[DestinationBinding, BeforeValidator(few_keys), AfterValidator(_require_no_credentials)] | None
    ) = None
    source: str | None = None
    coverage: Annotated[CoverageRecord, BeforeValidator(few_keys)] | None = None
    config_id: NonEmptyText | None = None
    registry_version: int | None = Field(default=None, ge=0)
    package_checksum: NonEmptyText | None = None
    schema_fingerprint: Sha256Hex | None = None

    @model_validator(mode="after")
    def _snapshots_are_ordered(self) -> Self:
        paths = [record.path for record in self.source_snapshot]
        if paths != sorted(set(paths)):
            raise ValueError("source_snapshot is not ordered by path, each once")  # A61
        return self

    @model_validator(mode="after")
    def _registry_keys_are_whole(self) -> Self:
        present = [name for name in REGISTRY_KEYS if getattr(self, name) is not None]
        if present and len(present) < len(REGISTRY_KEYS):
            missing = sorted(set(REGISTRY_KEYS) - set(present))
            raise ValueError(f"{', '.join(present)} without {', '.join(missing)}: they come all or none")
        if present and self.schema_fingerprint is None:
            raise ValueError(f"{', '.join(present)} without schema_fingerprint, which is required with them")
        return self
