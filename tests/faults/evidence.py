"""What must hold after every disturbance, whatever it was."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from ledger.commit import Policy
from ledger.events import OUTCOME_KINDS, WRITER_DIED, StoredEvent
from ledger.plan.model import PlannedOperation
from tests.support.inventory_operations import (
    changed_manufacturer,
    device_type,
    gone_manufacturer,
    interface_template,
    manufacturer,
)
from tests.support.real_writer import RealWriter


def mixed_operations(known_id: str) -> list[PlannedOperation]:
    """Every shape: creates, an update by id, a recorded delete, and creates of a kind keyed by a constraint alone."""
    return [
        manufacturer("Juniper", description="first"),
        changed_manufacturer("Known", known_id, description="after"),
        gone_manufacturer("Unlisted"),
        device_type("Juniper", "EX9214", slug="ex9214"),
        interface_template("Juniper", "EX9214", "xe-0/0/0"),
        interface_template("Juniper", "EX9214", "xe-0/0/1"),
    ]


def known_id(real: RealWriter) -> str:
    """The id of the manufacturer that was there before; the same on every branch."""
    nodes = real.sandbox.store.branches[real.branch].nodes.values()
    return next(node.id for node in nodes if node.values.get("name") == "Known")


async def commit_mixed(real: RealWriter, run_id: str) -> list[PlannedOperation]:
    """Commit them. A starved machine may lose an answer; that converges and is no part of what is shown here."""
    return await real.commit(run_id, mixed_operations(known_id(real)), policy=Policy(on_unknown="converge"))


async def require_sound(real: RealWriter, run_id: str, operations: Sequence[PlannedOperation]) -> None:
    """No operation without an outcome, no two successes for one, and never a false "nothing written"."""
    events = await real.events(run_id)
    outcomes = [event for event in events if event.kind in OUTCOME_KINDS]
    successes = Counter(e.operation_id for e in outcomes if e.kind in ("operation.applied", "operation.skipped"))
    assert successes == Counter(operation.operation_id for operation in operations)
    assert not [event for event in outcomes if event.kind == "operation.failed"]
    attempts = Counter((event.operation_id, event.attempt) for event in outcomes)
    assert set(attempts.values()) == {1}
    for event in outcomes:
        if event.kind == "operation.unknown":
            assert json.loads(event.body)["wrote"] is None
    assert events[-1].kind == "run.applied"
    assert json.loads(events[-1].body)["not_attempted"] == 0
    row = await real.ledger.binding(real.binding)
    assert row is not None
    assert row.in_flight is None


def deaths(events: Sequence[StoredEvent]) -> list[StoredEvent]:
    """The outcomes that a successor recorded for the operation of a dead writer."""
    return [e for e in events if e.kind == "operation.unknown" and json.loads(e.body)["error"] == WRITER_DIED]
