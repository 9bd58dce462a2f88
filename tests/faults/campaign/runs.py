"""The runs of an episode: each a slice of a real plan, saved for its branch, with the commit that names it."""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit
from ledger.plan.model import PlannedOperation, RelationshipReference
from tests.faults.campaign.plans import Pool, key_of, keyed_by_constraint_alone, slice_of
from tests.faults.campaign.script import RunScript, Script
from tests.faults.facts import PlannedRun, planned_run
from tests.support.committed_plans import commit_of, save


@dataclass(frozen=True)
class Committed:
    """A run of the episode with its files and its commit."""

    script: RunScript
    branch: str
    files: PlannedRun
    commit: PlanCommit


def make_runs(pool: Pool, script: Script, *, url: str, branches: Sequence[str], root: Path) -> list[Committed]:
    """Save every run of an episode below ``root``."""
    rng = random.Random(f"slices {script.number} {script.times}")
    made: list[Committed] = []
    once: dict[int, set[bytes]] = {}
    for run in script.runs:
        taken = once.setdefault(run.branch, set())
        plan = pool.plans[run.source]
        operations = slice_of(plan, rng, size=run.size, text=f"written by {run.run_id}", without=taken)
        taken |= {key_of(operation) for operation in operations if keyed_by_constraint_alone(operation)}
        operations, doomed = doom(operations, run, rng)
        binding = DestinationBinding(url=url, branch=branches[run.branch])
        run_dir = save(root, run.run_id, operations, source=run.source, binding=binding)
        commit = commit_of(root, run_dir, binding=binding, policy=run.policy, source=run.source)
        made.append(Committed(run, branches[run.branch], planned_run(run_dir, doomed=doomed), commit))
    return made


def doom(
    operations: list[PlannedOperation], run: RunScript, rng: random.Random
) -> tuple[list[PlannedOperation], str | None]:
    """Change one operation so that it must be proven unwritten: an id that nobody has, or a peer that is not there."""
    if run.doom is None:
        return operations, None
    found = [(number, changed) for number, o in enumerate(operations) if (changed := _doomed(o, run)) is not None]
    if not found:
        return operations, None
    number, changed = rng.choice(found)
    return [*operations[:number], changed, *operations[number + 1 :]], changed.operation_id


def _doomed(operation: PlannedOperation, run: RunScript) -> PlannedOperation | None:
    if run.doom == "stale id":
        nobody = str(uuid.uuid5(uuid.NAMESPACE_OID, run.run_id))
        return operation.model_copy(update={"destination_id": nobody}) if operation.action == "update" else None
    for place, reference in enumerate(operation.relationships or ()):
        (peer, *others) = reference.peers or [{}]
        is_plain = len(peer) == 1 and all(isinstance(part, str) for part in peer.values())
        if reference.field not in operation.identity and is_plain and not others:
            gone = RelationshipReference(
                field=reference.field,
                peer_kind=reference.peer_kind,
                cardinality=reference.cardinality,
                peers=[dict.fromkeys(peer, f"nobody of {run.run_id}")],
            )
            references = [*(operation.relationships or ())]
            references[place] = gone
            return operation.model_copy(update={"relationships": references})
    return None
