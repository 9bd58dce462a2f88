"""Checking a proof: from the file and a public key alone."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger.audit.checkpoint import Checkpoint, read_checkpoint
from ledger.audit.errors import LedgerTamperedError, NoteUnreadableError, NoTrustedKeyError, ProofUnreadableError
from ledger.audit.merkle import root_from_path
from ledger.audit.signed_note import VerifyingKey
from ledger.chain import event_hash
from ledger.commit import PlanCommit
from ledger.errors import Finding
from ledger.events import (
    BODIES,
    OUTCOME_KINDS,
    Body,
    PlanCommitted,
    PlanSealed,
    RunResumed,
    RunStarted,
    StoredEvent,
)

_KINDS = OUTCOME_KINDS | {"plan.committed", "run.started", "run.resumed", "plan.sealed"}
MAX_PROOF_BYTES = 64 * 1024 * 1024

NOT_PROVEN = (
    "that there is no other event about this operation: that needs every event (apply-ledger export)",
    "that the plan's checksum is of these lines: the seal says so, and `apply-ledger verify` checks it in the ledger",
    "who had a run begin that had been refused before, if its start names other objects: that event is left out",
    "that what was recorded is true",
)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _About(_Closed):
    url: str
    branch: str
    run_id: str
    operation_id: str
    plan_checksum: str
    events: int


class ProvenEvent(_Closed):
    """An event as the file has it, with the way of its hash to the root of the checkpoint."""

    url: str
    branch: str
    position: int
    recorded_at: datetime
    kind: str
    schema_version: int
    run_id: str | None
    operation_id: str | None
    ordinal: int | None
    attempt: int | None
    writer_epoch: int | None
    event_id: UUID
    prev_hash: str
    hash: str
    body: str
    path: list[str] = Field(max_length=64)

    def event(self) -> StoredEvent:
        """The event that it says.

        Raises:
            ValueError: a hash is none.
        """
        values = {name: getattr(self, name) for name in StoredEvent._fields}
        values |= {
            "body": self.body.encode(),
            "prev_hash": bytes.fromhex(self.prev_hash),
            "hash": bytes.fromhex(self.hash),
        }
        return StoredEvent(**values)


class _ProvenLine(_Closed):
    ordinal: int
    line: str
    plan_size: int
    path: list[str] = Field(max_length=64)


class OperationLine(BaseModel):
    """What a line of a plan is sure to say; the rest of it stays as it is."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    operation_id: str
    action: str
    kind: str
    identity: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown, where there was nothing to find."""

    commit: PlanCommit
    line: OperationLine
    outcomes: Sequence[_Held]
    resumptions: Sequence[_Held]


class Proof(_Closed):
    """The file."""

    format: Literal["apply-ledger-proof"]
    version: Literal[1]
    about: _About
    checkpoint: str
    operation: _ProvenLine
    events: list[ProvenEvent]


@dataclass(slots=True)
class CheckedProof:
    """What a proof shows.

    Attributes:
        findings: what does not hold; where there is any, nothing is shown.
        facts: what is shown, for machines.
    """

    findings: list[Finding] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def require_intact(self) -> None:
        """Raise where something does not hold.

        Raises:
            LedgerTamperedError: with every finding.
        """
        if self.findings:
            raise LedgerTamperedError(checked="the proof", findings=self.findings, next_action=_NEXT)

    def wrong(self, name: str, checked: str, expected: str, found: str) -> None:
        """Note what does not hold."""
        self.findings.append(Finding(name=name, checked=checked, expected=expected, found=found, next_action=_NEXT))


_NEXT = "ask for another proof, made from a ledger that `apply-ledger verify` holds to be whole"


def check_proof(data: bytes, keys: Sequence[VerifyingKey]) -> CheckedProof:
    """Check a proof.

    Args:
        data: the file.
        keys: public keys that are trusted.

    Raises:
        NoTrustedKeyError: no key was given.
        ProofUnreadableError: the file is no proof.
    """
    proof = _read(data)
    if not keys:
        raise NoTrustedKeyError(
            checked="the signature of the proof's checkpoint",
            expected="a public key that is known to be genuine",
            found="none",
            next_action="name the key with --key, as whoever publishes the checkpoints gave it to you",
        )
    checked = CheckedProof()
    checkpoint, signers = _signed(proof, keys, checked)
    shown = _shown(proof, _events(proof, checkpoint, checked), checkpoint, checked)
    if shown is not None and not checked.findings:
        checked.facts = _facts(shown, checkpoint, signers)
    return checked


def _read(data: bytes) -> Proof:
    try:
        if len(data) > MAX_PROOF_BYTES:
            raise ValueError(f"more than {MAX_PROOF_BYTES:,} bytes")
        return Proof.model_validate_json(data)
    except ValidationError as exc:
        found = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors()[:3])
    except ValueError as exc:
        found = str(exc)
    raise ProofUnreadableError(
        checked="the form of the proof",
        expected="a file that `apply-ledger prove` wrote",
        found=found,
        next_action="name such a file, unchanged",
    )


def _signed(proof: Proof, keys: Sequence[VerifyingKey], checked: CheckedProof) -> tuple[Checkpoint, list[str]]:
    try:
        read = read_checkpoint(proof.checkpoint.encode())
    except NoteUnreadableError as exc:
        raise ProofUnreadableError(
            checked="the proof's checkpoint", expected=exc.expected, found=exc.found, next_action=exc.next_action
        ) from exc
    signers = read.signers(list(keys))
    if not signers:
        checked.wrong("CheckpointNotSigned", "the signature of the checkpoint", "one by a key that is trusted", "none")
    return read.checkpoint, signers


@dataclass(frozen=True, slots=True)
class _Held:
    """An event that the checkpoint covers, with its body as one of its kind."""

    event: StoredEvent
    body: Body


def _events(proof: Proof, checkpoint: Checkpoint, checked: CheckedProof) -> list[_Held]:
    """The events that hold; what is said of them by other parts of the proof is compared with these alone."""
    held: list[_Held] = []
    last = 0
    for proven in proof.events:
        before, where = len(checked.findings), f"event {proven.position}"
        if proven.position <= last:
            checked.wrong("ProofEventOutOfOrder", where, f"a position above {last}", str(proven.position))
        last = proven.position
        try:
            event, path = proven.event(), [base64.b64decode(text, validate=True) for text in proven.path]
            computed = event_hash(event)
        except (ValueError, binascii.Error) as exc:
            checked.wrong("ProofEventInvalid", where, "fields that can be hashed", type(exc).__name__)
            continue
        if computed != event.hash:
            checked.wrong("ProofEventChanged", f"the hash of {where}", computed.hex(), event.hash.hex())
        if (event.url, event.branch) != (checkpoint.url, checkpoint.branch):
            checked.wrong("ProofEventElsewhere", where, "an event of the checkpoint's binding", "one of another")
        root = root_from_path(event.hash, event.position - 1, checkpoint.position, path)
        if root != checkpoint.tree_root:
            found = "a path of another length" if root is None else root.hex()
            checked.wrong("ProofEventNotCovered", f"the path of {where}", checkpoint.tree_root.hex(), found)
        body = _body(event)
        if body is None:
            kinds = "a commit, a resumption, an outcome or a seal, with a body of that kind"
            checked.wrong("ProofEventInvalid", where, kinds, f"{event.kind} with another body")
        elif len(checked.findings) == before:
            held.append(_Held(event, body))
    return held


def _body(event: StoredEvent) -> Body | None:
    model = BODIES[event.kind] if event.kind in _KINDS else None
    try:
        return None if model is None else model.model_validate_json(event.body)
    except ValueError:
        return None


def _shown(proof: Proof, held: Sequence[_Held], checkpoint: Checkpoint, checked: CheckedProof) -> _Shown | None:
    """The line leads to the seal, the seal is of the plan that was committed, and the outcomes are of that line."""
    commits = [item.body.commit for item in held if isinstance(item.body, PlanCommitted)]
    seals = [item.body for item in held if isinstance(item.body, PlanSealed)]
    outcomes = [item for item in held if item.event.kind in OUTCOME_KINDS]
    if len(commits) != 1 or len(seals) != 1 or not outcomes:
        found = f"{len(commits)} commits, {len(seals)} seals, {len(outcomes)} outcomes"
        checked.wrong("ProofNotWhole", "the events", "one commit, one seal of its plan, and outcomes", found)
        return None
    commit, seal, root = commits[0], seals[0], _sealed_root(proof.operation)
    if root != seal.lines_root or seal.operations_count != proof.operation.plan_size:
        checked.wrong("ProofLineNotSealed", "the path of the line", seal.lines_root, root)
    if seal.plan_checksum != commit.plan_checksum:
        checked.wrong("ProofOfAnotherPlan", "the plan", commit.plan_checksum, seal.plan_checksum)
    try:
        line = OperationLine.model_validate_json(proof.operation.line)
    except ValueError:
        checked.wrong("ProofLineInvalid", "the line", "one of an operation", "another text")
        return None
    for event in [item.event for item in held if not isinstance(item.body, PlanSealed)]:
        if event.run_id != commit.run_id:
            checked.wrong("ProofOfAnotherRun", f"event {event.position}", f"one of {commit.run_id}", str(event.run_id))
    _compare_outcomes(outcomes, line, proof.operation.ordinal, checked)
    proven = _About(
        url=checkpoint.url,
        branch=checkpoint.branch,
        run_id=commit.run_id,
        operation_id=line.operation_id,
        plan_checksum=commit.plan_checksum,
        events=len(proof.events),
    )
    if proof.about != proven:
        checked.wrong("ProofOfSomethingElse", "what the proof says it is about", str(proven), str(proof.about))
    resumptions = [item for item in held if isinstance(item.body, RunResumed | RunStarted)]
    return _Shown(commit, line, outcomes, resumptions)


def _compare_outcomes(outcomes: Sequence[_Held], line: OperationLine, ordinal: int, checked: CheckedProof) -> None:
    for item in outcomes:
        event = item.event
        if (event.operation_id, event.ordinal) != (line.operation_id, ordinal):
            checked.wrong(
                "ProofOfAnotherOperation",
                f"the outcome at {event.position}",
                f"one of {line.operation_id}, operation {ordinal}",
                f"{event.operation_id}, operation {event.ordinal}",
            )


def _sealed_root(line: _ProvenLine) -> str:
    """The root that the line's path leads to."""
    try:
        path = [base64.b64decode(text, validate=True) for text in line.path]
    except (ValueError, binascii.Error):
        return "a path that is none"
    root = root_from_path(line.line.encode(), line.ordinal, line.plan_size, path)
    return "a path of another length" if root is None else root.hex()


def _facts(shown: _Shown, checkpoint: Checkpoint, signers: Sequence[str]) -> dict[str, Any]:
    commit = shown.commit
    return {
        "url": checkpoint.url,
        "branch": checkpoint.branch,
        "signed_by": list(signers),
        "signed_at": checkpoint.signed_at.isoformat(),
        "checkpoint_position": checkpoint.position,
        "run_id": commit.run_id,
        "plan_checksum": commit.plan_checksum,
        "source": commit.source,
        "actor": commit.actor,
        "reason": commit.reason,
        "resumptions": [
            {"position": item.event.position, "by": item.body.by, "reason": item.body.reason}
            for item in shown.resumptions
            if isinstance(item.body, RunResumed | RunStarted)
        ],
        "operation": shown.line.model_dump(mode="json", exclude_unset=True),
        "outcomes": [
            {
                "position": item.event.position,
                "recorded_at": item.event.recorded_at.isoformat(),
                "kind": item.event.kind,
                "attempt": item.event.attempt,
                "writer_epoch": item.event.writer_epoch,
                **item.body.model_dump(mode="json"),
            }
            for item in shown.outcomes
        ],
        "not_proven": list(NOT_PROVEN),
    }
