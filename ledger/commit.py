"""The plan commit: "apply this plan". It carries the plan's checksum and location, never its operations (design 5)."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ledger.binding import DestinationBinding
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.model import ConfigVersion, Sha256Hex

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:apply-ledger")
"""Namespace of every UUIDv5 that this project makes: commits, events, ids of creates."""

MAX_REASON_BYTES = 64 * 1024
MAX_ACTOR_BYTES = 1024
RunId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]
SourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]

LedgerPosition = Annotated[int, Field(ge=0, lt=2**63)]
"""A place in the log of one binding; 0 is before its first event."""


class Policy(BaseModel):
    """How the writer handles situations that would otherwise need a decision by a person."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    on_unknown: Literal["stop", "converge"] = "stop"
    on_crash: Literal["resume", "stop"] = "resume"
    on_overlap: Literal["warn", "refuse"] = "warn"
    allow_destination_change: bool = False
    allow_stale: bool = False


class PolicyChanges(BaseModel):
    """What an order to resume wants otherwise than the commit of its run; None leaves it as it was committed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    on_unknown: Literal["stop", "converge"] | None = None
    on_crash: Literal["resume", "stop"] | None = None
    on_overlap: Literal["warn", "refuse"] | None = None
    allow_destination_change: bool | None = None
    allow_stale: bool | None = None

    def over(self, committed: Policy) -> Policy:
        """The policy of the resumption."""
        return committed.model_copy(update=self.model_dump(exclude_none=True))


class PlanCommit(BaseModel):
    """One request to apply one saved plan to one destination."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    commit_id: str
    run_id: RunId
    binding: DestinationBinding
    plan_checksum: Sha256Hex
    artifact_digest: Sha256Hex
    format_version: int
    operations_count: int = Field(ge=0)
    config_version: ConfigVersion
    source: SourceName
    artifact: str
    ledger_position: LedgerPosition | None = None
    actor: str
    reason: str = ""
    policy: Policy = Policy()
    committed_at: str
    traceparent: str | None = None

    def canonical_bytes(self) -> bytes:
        """The commit as stored and published."""
        return canonical_json_bytes(self.model_dump(mode="json"))


def commit_id(run_id: str, plan_checksum: str) -> str:
    """The id under which one run's plan can be committed once (G7)."""
    return str(uuid.uuid5(NAMESPACE, canonical_json_bytes(["commit", run_id, plan_checksum]).decode()))


def utc_text(moment: datetime) -> str:
    """ISO 8601 in UTC with microseconds, the one spelling of times in commits and manifests."""
    return moment.isoformat(timespec="microseconds")
