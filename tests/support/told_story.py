"""A ledger that tells a story an auditor could be asked about: several sources, people, outcomes, before-images.

Runs, in order (each plan with the coverage that the planner would have written):

    run-create   netbox    ada   creates tags red, blue and green; all applied
    run-update   library   bob   updates red, whose answer is lost; resumed by eve, applied at the second attempt;
                                 then updates blue and is refused: failed
    run-doubt    netbox    ada   updates red and blue; the answer about red is lost, nothing goes on
    run-delete   netbox    ada   records the delete of green
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledger.commit import Policy
from ledger.events import RunResumed
from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.checksum import checksummed_body, plan_checksum
from ledger.plan.coverage import COVERAGE_ACTIONS, CoverageLine
from ledger.plan.model import PlannedOperation
from tests.support.events import BRANCH, URL
from tests.support.operations import create, delete, update
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.recorded_runs import RecordedPlan, Recorder, make_commit, recorder

TAG = "BuiltinTag"


def tag(name: str, **fields: Any) -> PlannedOperation:
    """A create of a tag."""
    return create(TAG, {"name": name}, {"name": name, **fields})


def changed_tag(name: str, **fields: Any) -> PlannedOperation:
    """An update of a tag by the id that the story's destination gave it."""
    return update(TAG, {"name": name}, {"name": name, **fields}, destination_id=f"node-{name}")


def told_plan(
    run_id: str,
    source: str,
    operations: Sequence[PlannedOperation],
    observed: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    unchanged: Sequence[str] = (),
) -> RecordedPlan:
    """A plan with its account.

    Args:
        run_id: of the run.
        source: the sync's name.
        operations: in any order.
        observed: for each tag that is updated, the values that differed.
        unchanged: tags that were considered and are as they should be.
    """
    ordered = sorted(operations, key=lambda operation: (operation.tier, operation.operation_id))
    lines = b"".join(operation.line() for operation in ordered)
    covered = [_covered(operation, (observed or {}).get(operation.identity["name"], {})) for operation in ordered]
    covered += [_line("none", name, destination_id=f"node-{name}") for name in unchanged]
    covered.sort(key=lambda line: line.order)
    coverage = tuple(line.line() for line in covered)
    counts = {action: sum(line.action == action for line in covered) for action in COVERAGE_ACTIONS}
    document = {
        "format_version": 3,
        "run_id": run_id,
        "created_at": "2026-11-29T12:00:00.000000+00:00",
        "config_version": "v1",
        "source": source,
        "source_snapshot": [],
        "operations_count": len(ordered),
        "delete_operations_computed": True,
        "destination_binding": {"url": URL, "branch": BRANCH},
        "coverage": {"digest": hashlib.sha256(b"".join(coverage)).hexdigest(), "counts": counts},
    }
    checksum = plan_checksum(document, lines)
    manifest = canonical_json_bytes({**document, "plan_checksum": checksum})
    return RecordedPlan(run_id, source, tuple(ordered), manifest, checksummed_body(document), checksum, coverage)


def _covered(operation: PlannedOperation, observed: Mapping[str, Any]) -> CoverageLine:
    action = {"create": "create", "update": "update", "delete": "remove"}[operation.action]
    payload = operation.payload or {}
    differences = {name: {"observed": value, "desired": payload.get(name)} for name, value in observed.items()}
    known = None if action == "create" else f"node-{operation.identity['name']}"
    return _line(
        action,
        operation.identity["name"],
        kind=operation.kind,
        identity=operation.identity,
        operation_id=operation.operation_id,
        differences=differences,
        destination_id=known,
        tier=operation.tier,
    )


def _line(action: str, name: str, **fields: Any) -> CoverageLine:
    return CoverageLine.model_validate(
        {
            "kind": TAG,
            "identity": {"name": name},
            "action": action,
            "entry": {"index": 0, "name": "tags"},
            "providers": {"source": "jsonl", "destination": "infrahub"},
            **fields,
        }
    )


async def commit(recording: Recorder, plan: RecordedPlan, *, actor: str, reason: str) -> None:
    """Commit and store a plan on somebody's word."""
    commit_of_plan = make_commit(plan).model_copy(update={"actor": actor, "reason": reason})
    await recording.ledger.submit_commit(recording.binding_id, commit_of_plan)
    await recording.store(plan)


CREATED = told_plan(
    "run-create", "netbox", [tag("red", description="a", tags=["x"]), tag("blue", description="b"), tag("green")]
)
UPDATED = told_plan(
    "run-update",
    "library",
    [changed_tag("red", description="warm", tags=["x"]), changed_tag("blue", description="cold")],
    {"red": {"description": "a"}, "blue": {"description": "b"}},
    unchanged=[f"other-{number}" for number in range(20)],
)
DOUBTED = told_plan(
    "run-doubt",
    "netbox",
    [changed_tag("red", description="a"), changed_tag("blue", description="blue again")],
    {"red": {"description": "warm"}, "blue": {"description": "b"}},
)
DELETED = told_plan("run-delete", "netbox", [delete(TAG, {"name": "green"})])
TOLD_PLANS = (CREATED, UPDATED, DOUBTED, DELETED)


async def tell(recording: Recorder) -> None:
    """Record the story."""
    await commit(recording, CREATED, actor="ada", reason="first import")
    await recording.started(CREATED)
    for ordinal in range(len(CREATED.operations)):
        await recording.outcome(CREATED, ordinal, "applied")
    await recording.ended(CREATED, "run.applied")
    await _update(recording)
    await commit(recording, DOUBTED, actor="ada", reason="ticket 7")
    await recording.started(DOUBTED)
    await recording.outcome(DOUBTED, 0, "unknown")
    await recording.ended(DOUBTED, "run.interrupted")
    await commit(recording, DELETED, actor="ada", reason="")
    await recording.started(DELETED)
    await recording.outcome(DELETED, 0, "skipped")
    await recording.ended(DELETED, "run.applied")


async def _update(recording: Recorder) -> None:
    await commit(recording, UPDATED, actor="bob", reason="colours of the year")
    await recording.started(UPDATED)
    await recording.outcome(UPDATED, 0, "unknown")
    await recording.ended(UPDATED, "run.interrupted")
    await recording.ordered_to_resume(UPDATED, by="eve", reason="looked, it is safe")
    body = RunResumed(by="eve", reason="looked, it is safe", from_ordinal=0, policy=Policy())
    await recording.event("run.resumed", body, UPDATED.run_id, n="resume")
    await recording.outcome(UPDATED, 0, "applied", attempt=2)
    await recording.outcome(UPDATED, 1, "failed")
    await recording.ended(UPDATED, "run.failed", n=1)


def told_database(server: PostgresServer) -> Iterator[dict[str, str]]:
    """DSNs of a new copy of a ledger with the story; for fixtures."""

    async def migrate_and_tell(admin_dsn: str) -> None:
        await migrate_fully(admin_dsn)
        async with recorder(_dsns(server, server.database_of(admin_dsn))) as recording:
            await tell(recording)

    name = server.create_database(server.template("a told story", migrate_and_tell))
    yield _dsns(server, name)
    server.drop_database(name)


def _dsns(server: PostgresServer, name: str) -> dict[str, str]:
    return {"admin": server.dsn(name)} | {key: server.dsn(name, user=role) for key, role in ROLES.items()}
