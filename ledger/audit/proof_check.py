"""Checking a proof: from the file and a public key alone."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger.audit.bodies import parsed_object
from ledger.audit.checkpoint import Checkpoint, read_checkpoint
from ledger.audit.errors import LedgerTamperedError, NoteUnreadableError, NoTrustedKeyError, ProofUnreadableError
from ledger.audit.merkle import root_from_path
from ledger.audit.signed_note import VerifyingKey
from ledger.chain import event_hash
from ledger.errors import Finding
from ledger.events import OUTCOME_KINDS, StoredEvent

MAX_PROOF_BYTES = 64 * 1024 * 1024

NOT_PROVEN = (
    "that there is no other event about this operation: that needs every event (apply-ledger export)",
    "that the plan's checksum is of these lines: the seal says so, and `apply-ledger verify` checks it in the ledger",
    "that what was recorded is true",
)


class _Closed(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _ProvenEvent(_Closed):
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


class Proof(_Closed):
    """The file."""

    format: Literal["apply-ledger-proof"]
    version: Literal[1]
    about: dict[str, Any]
    checkpoint: str
    operation: _ProvenLine
    events: list[_ProvenEvent]


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
    events = _events(proof, checkpoint, checked)
    _line(proof, events, checked)
    if not checked.findings:
        checked.facts = _facts(proof, events, checkpoint, signers)
    return checked


def _read(data: bytes) -> Proof:
    try:
        if len(data) > MAX_PROOF_BYTES:
            raise ValueError(f"more than {MAX_PROOF_BYTES:,} bytes")
        return Proof.model_validate(json.loads(data))
    except ValidationError as exc:
        found = "; ".join(f"{'.'.join(map(str, error['loc']))}: {error['msg']}" for error in exc.errors()[:3])
    except (ValueError, RecursionError) as exc:
        found = f"{type(exc).__name__}"
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


def _events(proof: Proof, checkpoint: Checkpoint, checked: CheckedProof) -> list[StoredEvent]:
    events = []
    for proven in proof.events:
        where = f"event {proven.position}"
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
        events.append(event)
    return events


def _line(proof: Proof, events: Sequence[StoredEvent], checked: CheckedProof) -> None:
    """The line leads to the seal, the seal is of the plan that was committed, and the outcomes are of that line."""
    record = parsed_object(proof.operation.line.encode()) or {}
    commits = [
        _body(event)["commit"] for event in events if event.kind == "plan.committed" and "commit" in _body(event)
    ]
    seals = [_body(event) for event in events if event.kind == "plan.sealed"]
    outcomes = [event for event in events if event.kind in OUTCOME_KINDS]
    if len(commits) != 1 or len(seals) != 1 or not outcomes:
        found = f"{len(commits)} commits, {len(seals)} seals, {len(outcomes)} outcomes"
        checked.wrong("ProofNotWhole", "the events", "one commit, one seal of its plan, and outcomes", found)
        return
    seal, commit = seals[0], commits[0]
    root, sealed = _sealed_root(proof.operation), str(seal.get("lines_root"))
    if root != sealed or seal.get("operations_count") != proof.operation.plan_size:
        checked.wrong("ProofLineNotSealed", "the path of the line", sealed, root)
    if seal.get("plan_checksum") != commit.get("plan_checksum"):
        checked.wrong(
            "ProofOfAnotherPlan", "the plan", str(commit.get("plan_checksum")), str(seal.get("plan_checksum"))
        )
    wanted = (commit.get("run_id"), record.get("operation_id"), proof.operation.ordinal)
    for event in outcomes:
        if (event.run_id, event.operation_id, event.ordinal) != wanted:
            checked.wrong(
                "ProofOfAnotherOperation",
                f"the outcome at {event.position}",
                f"one of {wanted[1]} of run {wanted[0]}",
                f"{event.operation_id} of run {event.run_id}",
            )


def _sealed_root(line: _ProvenLine) -> str:
    """The root that the line's path leads to."""
    try:
        path = [base64.b64decode(text, validate=True) for text in line.path]
    except (ValueError, binascii.Error):
        return "a path that is none"
    root = root_from_path(line.line.encode(), line.ordinal, line.plan_size, path)
    return "a path of another length" if root is None else root.hex()


def _facts(
    proof: Proof, events: Sequence[StoredEvent], checkpoint: Checkpoint, signers: Sequence[str]
) -> dict[str, Any]:
    record = parsed_object(proof.operation.line.encode()) or {}
    commit = next(_body(event)["commit"] for event in events if event.kind == "plan.committed")
    return {
        "url": checkpoint.url,
        "branch": checkpoint.branch,
        "signed_by": list(signers),
        "signed_at": checkpoint.signed_at.isoformat(),
        "checkpoint_position": checkpoint.position,
        "run_id": commit["run_id"],
        "plan_checksum": commit["plan_checksum"],
        "source": commit["source"],
        "actor": commit["actor"],
        "reason": commit["reason"],
        "operation": record,
        "outcomes": [
            {
                "position": event.position,
                "recorded_at": event.recorded_at.isoformat(),
                "kind": event.kind,
                "attempt": event.attempt,
                "writer_epoch": event.writer_epoch,
                **_body(event),
            }
            for event in events
            if event.kind in OUTCOME_KINDS
        ],
        "not_proven": list(NOT_PROVEN),
    }


def _body(event: StoredEvent) -> Mapping[str, Any]:
    return parsed_object(event.body) or {}
