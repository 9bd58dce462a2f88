"""Restore test: sends every applied operation of a ledger to an empty destination again, and compares the result.

It shows that yesterday can be rebuilt from the ledger alone. Nothing of it is recorded. Ids are the destination's, so
they are others: an update is keyed by the id that the rebuilt object has now. What the ledger cannot rebuild is named
and passed over, never guessed: an object that was there before its first write through this ledger.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.destination import (
    DestinationReader,
    ObservedObject,
    OutcomeUnknownError,
    PeerResolver,
    PlannedWriteDestination,
    ProvenUnwrittenError,
)
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import object_key
from ledger.plan.model import PlannedOperation

MAX_NAMED = 100
"""Objects that are named in full; the rest is counted."""


class DrillTargetNotEmptyError(ApplyLedgerError):
    """The target of a restore test contains objects of the kinds that would be written."""

    exit_code = ExitCode.REFUSED


class DrillOntoRecordedDestinationError(ApplyLedgerError):
    """The target of a restore test is a destination of this ledger, with real data."""

    exit_code = ExitCode.REFUSED


@dataclass(frozen=True, slots=True)
class AppliedOperation:
    """One operation that was applied: the event's position and node id, and the plan's operation."""

    position: int
    run_id: str
    node_id: str
    operation: PlannedOperation


@dataclass(frozen=True, slots=True)
class NotRebuilt:
    """An operation that could not be asserted again, and why."""

    position: int
    run_id: str
    kind: str
    identity: Mapping[str, Any]
    why: str

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "position": self.position,
            "run_id": self.run_id,
            "kind": self.kind,
            "identity": dict(self.identity),
            "why": self.why,
        }


@dataclass(slots=True)
class Drill:
    """Asserts applied operations in order.

    Attributes:
        destination: where to.
        asserted: how many operations were written.
        failures: how many could not be.
        not_rebuilt: the first of those.
        ids: node ids of then to those of now.
        keys: object keys to node ids of now.
        spoiled: object keys of objects with an operation that could not be asserted.
    """

    destination: PlannedWriteDestination
    asserted: int = 0
    failures: int = 0
    not_rebuilt: list[NotRebuilt] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)
    keys: dict[bytes, str] = field(default_factory=dict)
    spoiled: set[bytes] = field(default_factory=set)
    _peers: PeerResolver | None = None

    async def take(self, applied: AppliedOperation) -> None:
        """Assert the next operation.

        Raises:
            OutcomeUnknownError: the answer was lost; what is there now is not known, so the drill ends.
        """
        operation = applied.operation
        key = object_key(operation.kind, operation.identity)
        if operation.action == "update":
            now = self.keys.get(key) or self.ids.get(operation.destination_id or "")
            if now is None:
                self._passed_over(applied, key, "it was there before its first write, and only the ledger is read")
                return
            operation = operation.model_copy(update={"destination_id": now})
        try:
            node_id = await self.destination.apply_planned_operation(operation=operation, peers=self.peers)
        except OutcomeUnknownError:
            raise
        except ProvenUnwrittenError as exc:
            self._passed_over(applied, key, f"{type(exc).__name__}: {exc.found}")
            return
        self.asserted += 1
        self.ids[applied.node_id] = node_id
        self.keys[key] = node_id

    @property
    def peers(self) -> PeerResolver:
        """Finds what an operation refers to, once for the whole drill."""
        if self._peers is None:
            self._peers = self.destination.new_peer_resolver()
        return self._peers

    def _passed_over(self, applied: AppliedOperation, key: bytes, why: str) -> None:
        self.failures += 1
        self.spoiled.add(key)
        if len(self.not_rebuilt) < MAX_NAMED:
            operation = applied.operation
            self.not_rebuilt.append(
                NotRebuilt(applied.position, applied.run_id, operation.kind, operation.identity, why)
            )


class DrillGuard:
    """The guard of requests that are not recorded: there is no lease to check and no mark to wait for."""

    async def ready(self) -> None:
        """Nothing is marked."""

    def before_send(self, *, write: bool = True) -> None:
        """Let every request go."""


async def require_empty(reader: DestinationReader, kinds: set[str]) -> None:
    """A drill shows something only where nothing stood before.

    Raises:
        DrillTargetNotEmptyError: there are objects of these kinds.
    """
    there = {kind: count for kind, count in (await reader.counts(sorted(kinds))).items() if count}
    if there:
        raise DrillTargetNotEmptyError(
            checked=f"what stands in {reader.binding}",
            expected="no object of the kinds that are asserted",
            found=", ".join(f"{count:,} of {kind}" for kind, count in there.items()),
            next_action="name an empty branch of an empty Infrahub, or a fresh sandbox: apply-ledger sandbox",
        )


async def observed_objects(reader: DestinationReader, fields: Mapping[str, Any]) -> AsyncIterator[ObservedObject]:
    """Every object of the kinds in ``fields`` (kind to selection), as it is there now."""
    for kind in sorted(fields):
        async for item in reader.read(kind, fields[kind]):
            yield item
