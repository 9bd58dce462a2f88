"""Orders over HTTP: the same as those of the command line, which is who carries them out."""

from __future__ import annotations

import uuid
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field

from ledger.api.models import Receipt
from ledger.commit import NAMESPACE, Policy, PolicyChanges, RunId
from ledger.plan.canonical import canonical_json_bytes

Reason = Annotated[
    str,
    Field(
        max_length=64 * 1024, pattern=r"^[^\x00]*$", description="Recorded for good.", examples=["approved in CHG-4711"]
    ),
]
ArtifactName = Annotated[
    str,
    Field(
        pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,127}/)?[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
        description="`<sync-name>/<run-id>` below the server's root of runs, or a run id that is unique there.",
        examples=["netbox/20261129T1900-0a1b2c3d"],
    ),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CommitOrder(_Body):
    """Apply a plan that was reviewed."""

    run: ArtifactName
    expected_checksum: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="Of the plan that was reviewed.", examples=["ab" * 32])
    ]
    reason: Reason = ""
    policy: Policy = Policy()


class ResumeOrder(_Body):
    """Go on with a run, under the policy of its commit where this order names no other."""

    reason: Reason = ""
    policy: PolicyChanges = PolicyChanges()


class StopOrder(_Body):
    """Stop a run between two operations."""

    reason: Reason = ""


class RunName(BaseModel):
    """Which run, on which binding."""

    model_config = ConfigDict(frozen=True)

    binding_id: int
    run_id: RunId


class Orders(Protocol):
    """What takes orders. Each method may raise any refusal of the command that does the same."""

    async def commit(self, order: CommitOrder, *, actor: str, traceparent: str | None) -> Receipt:
        """As ``apply-ledger commit``."""

    async def resume(self, run: RunName, order: ResumeOrder, *, actor: str, order_id: uuid.UUID | None) -> Receipt:
        """As ``apply-ledger resume --no-wait``."""

    async def stop(self, run: RunName, order: StopOrder, *, actor: str, order_id: uuid.UUID | None) -> Receipt:
        """As ``apply-ledger stop``."""


def order_id_of(token_id: str | None, key: str | None) -> uuid.UUID | None:
    """The id of an order that was sent with an idempotency key; a key is its sender's own."""
    if key is None:
        return None
    return uuid.uuid5(NAMESPACE, canonical_json_bytes(["idempotency-key", token_id, key]).decode())
