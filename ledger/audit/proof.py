"""Proof of one operation's outcome: a file that is checked offline and discloses nothing else of the plan.

How it hangs together. A signed checkpoint holds the root of a tree whose leaves are the hashes of the events. Each
event in the file is whole, so its hash is computed from it; a path leads from the hash to the root. One of those events
is the seal of the plan (``plan.sealed``): the root of a tree whose leaves are the plan's lines. The operation's line is
in the file, and a path leads from it to that root. So signature, events and line are tied together by hashes alone; of
everything else the file holds hashes only. Whoever can guess a neighbouring line to the last byte can find that guess
confirmed by its hash.

What it proves: that these events were in the log that was signed, at these positions, and that the line is that of the
operation in the plan that the run was committed with. What it does not: that there is no other event about this
operation (that needs all events: an export); that what was recorded is true; that the plan's own checksum is of these
lines (that too needs all of them: who sealed the plan says so, and ``verify`` checks it).
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.audit.checkpoint import read_checkpoint
from ledger.audit.errors import NoCheckpointForProofError, OperationNotProvableError
from ledger.audit.merkle import InclusionProof
from ledger.audit.replay import replay_record
from ledger.events import OUTCOME_KINDS, StoredEvent
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

FORMAT = "apply-ledger-proof"
VERSION = 1
_OF_THE_RUN = frozenset({"plan.committed", "run.resumed"})


@dataclass(slots=True)
class _Line:
    """The operation's line and the way to the seal of its plan."""

    checksum: str
    ordinal: int
    line: bytes
    size: int
    path: list[bytes]


async def prove_operation(ledger: Ledger, row: BindingRow, run_id: str, operation_id: str) -> dict[str, Any]:
    """Everything that shows one operation's outcome.

    All hashes of the log and all lines of the plan are read once; memory does not grow with either.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        run_id: of the run.
        operation_id: of the operation.

    Raises:
        OperationNotProvableError: the run has no such operation, or none that has an outcome.
        NoCheckpointForProofError: no checkpoint covers its last outcome and the seal of its plan.
        StoreError: the database cannot be read.
    """
    line = await _line(ledger, row, run_id, operation_id)
    events = await _events(ledger, row, run_id, operation_id)
    note, size, seal = await _checkpoint(ledger, row, line.checksum, max(event.position for event in events))
    async for event in ledger.events(row.id, after=seal - 1, until=seal):
        events.append(event)
    events.sort(key=lambda event: event.position)
    paths = await _paths(ledger, row, [event.position for event in events], size)
    return {
        "format": FORMAT,
        "version": VERSION,
        "about": {
            "url": row.url,
            "branch": row.branch,
            "run_id": run_id,
            "operation_id": operation_id,
            "plan_checksum": line.checksum,
            "events": len(events),
        },
        "checkpoint": note,
        "operation": {
            "ordinal": line.ordinal,
            "line": line.line.decode(),
            "plan_size": line.size,
            "path": _texts(line.path),
        },
        "events": [{**_record(event), "path": _texts(path)} for event, path in zip(events, paths, strict=True)],
    }


def proof_file(proof: Mapping[str, Any]) -> bytes:
    """The file of a proof, as ``prove`` writes it and ``verify --proof`` reads it."""
    return json.dumps(proof, indent=1, ensure_ascii=False).encode() + b"\n"


async def _line(ledger: Ledger, row: BindingRow, run_id: str, operation_id: str) -> _Line:
    artifact = await ledger.stored_artifact(row.id, run_id)
    if artifact is None:
        raise _not_provable(run_id, operation_id, "a run whose plan is stored", "no stored plan")
    found: tuple[int, bytes] | None = None
    size = 0
    async for stored in ledger.stored_operations(artifact.checksum):
        if stored.operation_id == operation_id:
            found = (size, stored.line)
        size += 1
    if found is None:
        raise _not_provable(run_id, operation_id, "an operation of this plan", "none with this id")
    proof = InclusionProof(found[0], size)
    async for line in ledger.stored_plan(artifact.checksum):
        proof.feed(line)
    return _Line(artifact.checksum, found[0], found[1], size, proof.path)


async def _events(ledger: Ledger, row: BindingRow, run_id: str, operation_id: str) -> list[StoredEvent]:
    """The commit, the resumptions of the run and the operation's outcomes.

    What else there is of the run is left out: ``run.started`` may name objects of other operations. It is a resumption
    where somebody had a run begin that had been refused before, and is left out there as well if it names any.
    """
    events = [
        event
        async for event in ledger.events(row.id, until=row.head_position, run_id=run_id)
        if event.kind in _OF_THE_RUN
        or (event.kind in OUTCOME_KINDS and event.operation_id == operation_id)
        or _is_start_on_somebodys_word(event)
    ]
    outcomes = [event.position for event in events if event.kind in OUTCOME_KINDS]
    if not outcomes:
        raise _not_provable(run_id, operation_id, "an operation that was attempted", "no outcome of it")
    # What came after the last outcome says nothing about it.
    return [event for event in events if event.position <= outcomes[-1]]


def _is_start_on_somebodys_word(event: StoredEvent) -> bool:
    body = (parsed_object(event.body) or {}) if event.kind == "run.started" else {}
    return body.get("by") is not None and not body.get("overlaps")


async def _checkpoint(ledger: Ledger, row: BindingRow, checksum: str, last: int) -> tuple[str, int, int]:
    """The first note that covers both the plan's seal and everything up to a position; its size, and the seal's."""
    seal: int | None = None
    async for mark in ledger.checkpoint_marks(row.id, until=row.head_position):
        body = parsed_object(mark.body) or {}
        if mark.kind == "plan.sealed" and body.get("plan_checksum") == checksum and seal is None:
            seal = mark.position
        elif mark.kind == "checkpoint.published" and seal is not None:
            note = str(body.get("note"))
            size = read_checkpoint(note.encode()).checkpoint.position
            if size >= max(seal, last):
                return note, size, seal
    raise NoCheckpointForProofError(
        checked=f"the checkpoints behind position {last:,}",
        expected="one that covers the operation's outcome and the seal of its plan",
        found="none",
        next_action="run `apply-ledger verify` with any checkpoint that was kept; if none ever was published:"
        " apply-ledger checkpoint publish",
    )


async def _paths(ledger: Ledger, row: BindingRow, positions: Sequence[int], size: int) -> list[list[bytes]]:
    """The paths of several events, in one pass over all hashes."""
    proofs = [InclusionProof(position - 1, size) for position in positions]
    async for leaf in _hashes(ledger, row, size):
        for proof in proofs:
            proof.feed(leaf)
    return [proof.path for proof in proofs]


async def _hashes(ledger: Ledger, row: BindingRow, size: int) -> AsyncIterator[bytes]:
    async for _, value in ledger.event_hashes(row.id, until=size):
        yield value


def _record(event: StoredEvent) -> Mapping[str, Any]:
    """The event with its body as the very text that was hashed."""
    record = {key: value for key, value in replay_record(event).items() if key not in ("body", "body_text")}
    return {**record, "body": event.body.decode("utf-8", errors="backslashreplace")}


def _texts(path: Sequence[bytes]) -> list[str]:
    return [base64.b64encode(value).decode() for value in path]


def _not_provable(run_id: str, operation_id: str, expected: str, found: str) -> OperationNotProvableError:
    return OperationNotProvableError(
        checked=f"operation {operation_id} of run {run_id}",
        expected=expected,
        found=found,
        next_action=f"`apply-ledger replay --run {run_id}` lists the operations that were attempted",
    )
