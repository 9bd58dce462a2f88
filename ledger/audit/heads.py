"""Signed heads beside the events that go by: those that were kept elsewhere, and those that the log itself recorded.

One that was kept elsewhere and was signed by a key that the auditor trusts is what a rewritten ledger cannot agree
with. Those in the log are checked as well: they are part of what was appended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.audit.checkpoint import Checkpoint, ReadCheckpoint, read_checkpoint
from ledger.audit.errors import CheckpointOfNoBindingError, NoteUnreadableError, NoTrustedKeyError
from ledger.audit.merkle import Frontier
from ledger.audit.report import LevelReport
from ledger.audit.signed_note import VerifyingKey
from ledger.audit.source import AuditSource
from ledger.events import CheckpointPublished, PlanSealed, StoredEvent
from ledger.store.records import BindingRow


@dataclass(frozen=True, slots=True)
class TrustedCheckpoint:
    """A checkpoint that was kept elsewhere.

    Attributes:
        checkpoint: what it says.
        name: of its file, for people.
        signers: the trusted keys that signed it; without any it is a finding.
    """

    checkpoint: Checkpoint
    name: str
    signers: tuple[str, ...]

    @property
    def position(self) -> int:
        """Of the last event that it covers."""
        return self.checkpoint.position

    @property
    def head_hash(self) -> bytes:
        """The hash of that event."""
        return self.checkpoint.head_hash

    def is_of(self, url: str, branch: str) -> bool:
        """Whether it is about this binding."""
        return (self.checkpoint.url, self.checkpoint.branch) == (url, branch)


def trusted_checkpoint(data: bytes, name: str, keys: Sequence[VerifyingKey]) -> TrustedCheckpoint:
    """Read a checkpoint that was kept elsewhere.

    Raises:
        NoTrustedKeyError: there is no key to check it with.
        NoteUnreadableError: it is no checkpoint.
    """
    read: ReadCheckpoint = read_checkpoint(data)
    if not keys:
        raise NoTrustedKeyError(
            checked=f"the signature of {name}",
            expected="a public key that is known to be genuine",
            found=f"none; it says it was signed by {', '.join(read.note.names())}",
            next_action="name the key with --key, as whoever publishes the checkpoints gave it to you",
        )
    return TrustedCheckpoint(read.checkpoint, name, tuple(read.signers(list(keys))))


def require_of_these(kept: Sequence[TrustedCheckpoint], rows: Sequence[BindingRow]) -> None:
    """A checkpoint of a binding that is not there is what a ledger looks like from which a binding was removed.

    Raises:
        CheckpointOfNoBindingError: one is of none of these bindings, and would be passed over in silence.
    """
    for trusted in kept:
        said = trusted.checkpoint
        if not any(trusted.is_of(row.url, row.branch) for row in rows):
            raise CheckpointOfNoBindingError(
                checked=f"the binding of {trusted.name}",
                expected=f"{said.url} [{said.branch}] with {said.position:,} events or more",
                found=", ".join(str(row.binding) for row in rows) or "no binding",
                next_action="check which binding was named and which ledger this is; a binding is never removed",
            )


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is said of the event at a position: its hash, and the root of the tree up to it where that is looked at."""

    head_hash: bytes
    tree_root: bytes | None
    says: str


@dataclass(slots=True)
class Heads:
    """Compares claims with the events as they go by."""

    report: LevelReport
    claims: dict[int, list[_Claim]]
    head_position: int
    tree: Frontier | None = None
    seals: dict[str, list[PlanSealed]] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def feed(self, event: StoredEvent) -> None:
        """Take the next event."""
        if self.tree is not None:
            self.tree.append(event.hash)
        for claim in self.claims.get(event.position, ()):
            self._seen.add(event.position)
            self._compare(event.position, claim, event.hash)

    def claims_among(self, first: int, last: int) -> bool:
        """Whether anything is claimed about an event between two positions."""
        return any(first <= position <= last for position in self.claims)

    def passed(self, hashes: Sequence[bytes]) -> None:
        """Take events that nothing is claimed about."""
        if self.tree is not None:
            for value in hashes:
                self.tree.append(value)

    def finish(self) -> None:
        """Claims about events that did not go by are about events that are not there."""
        for position, claims in sorted(self.claims.items()):
            for claim in claims if position not in self._seen else ():
                self.report.checked += 1
                self.report.add(
                    "CheckpointBeyondHead",
                    checked=f"{claim.says} at position {position}",
                    expected=f"an event with hash {claim.head_hash.hex()}",
                    found=f"no such event; the head is at {self.head_position}",
                )

    def _compare(self, position: int, claim: _Claim, found: bytes) -> None:
        self.report.checked += 1
        if found != claim.head_hash:
            self.report.add(
                "CheckpointMismatch",
                checked=f"{claim.says} at position {position}",
                expected=f"an event with hash {claim.head_hash.hex()}",
                found=found.hex(),
            )
        root = None if self.tree is None or claim.tree_root is None else self.tree.root()
        if root is not None and root != claim.tree_root:
            self.report.add(
                "CheckpointTreeMismatch",
                checked=f"{claim.says} at position {position}",
                expected=f"the root {(claim.tree_root or b'').hex()} over all events up to it",
                found=root.hex(),
            )


async def recorded_heads(
    ledger: AuditSource,
    row: BindingRow,
    kept: Sequence[TrustedCheckpoint],
    resume_from: TrustedCheckpoint | None,
    report: LevelReport,
) -> Heads:
    """The claims of kept and of recorded checkpoints, to be compared with the events behind ``resume_from``."""
    after = 0 if resume_from is None else resume_from.position
    heads = Heads(report, {}, row.head_position)
    for trusted in kept:
        _require_signed(trusted, report)
        if trusted.position > after or resume_from is None:
            claim = _Claim(trusted.head_hash, trusted.checkpoint.tree_root, f"the checkpoint {trusted.name}")
            heads.claims.setdefault(trusted.position, []).append(claim)
    if resume_from is not None:
        await _trusted_start(ledger, row, resume_from, report)
    frontier: Frontier | None = Frontier() if resume_from is None else None
    async for mark in ledger.checkpoint_marks(row.id, until=row.head_position):
        if mark.kind == "plan.sealed":
            _take_seal(heads, mark.body)
            continue
        body = _body(mark.body)
        if body is None:
            report.checked += 1
            report.add(
                "CheckpointBodyInvalid",
                checked=f"the checkpoint of event {mark.position}",
                expected="hashes of 32 bytes and a note",
                found="another body",
            )
            continue
        _compare_note(row, body, mark.position, report)
        if resume_from is not None and body.position == after:
            frontier = _frontier(body, resume_from.checkpoint.tree_root) or frontier
        if body.position > after:
            claim = _Claim(
                bytes.fromhex(body.head_hash), bytes.fromhex(body.tree_root), f"the checkpoint of event {mark.position}"
            )
            heads.claims.setdefault(body.position, []).append(claim)
    if heads.claims:
        heads.tree = frontier
        if frontier is None:
            report.unchecked.append("the trees of later checkpoints: they need every event from the first one on")
    return heads


def _take_seal(heads: Heads, data: bytes) -> None:
    try:
        seal = PlanSealed.model_validate_json(data)
    except ValueError:
        return  # the catalogue names it
    heads.seals.setdefault(seal.plan_checksum, []).append(seal)


def _require_signed(trusted: TrustedCheckpoint, report: LevelReport) -> None:
    if not trusted.signers:
        report.checked += 1
        report.add(
            "CheckpointNotSigned",
            checked=f"the signature of {trusted.name}",
            expected="one by a key that is trusted",
            found="none; the file was changed, or another key signed it",
        )


async def _trusted_start(ledger: AuditSource, row: BindingRow, start: TrustedCheckpoint, report: LevelReport) -> None:
    """The event at which reading begins must be the one that was signed."""
    report.checked += 1
    found = "no such event"
    async for event in ledger.events(row.id, after=start.position - 1, until=start.position):
        found = event.hash.hex()
    if found != start.head_hash.hex():
        report.add(
            "CheckpointMismatch",
            checked=f"the checkpoint {start.name} at position {start.position}",
            expected=f"an event with hash {start.head_hash.hex()}",
            found=found,
        )
    report.unchecked.append(
        f"events 1 to {start.position:,} were not read again: {start.name} was taken for the truth about them"
    )


def _body(data: bytes) -> CheckpointPublished | None:
    """The body, where it is one whose hashes are hashes."""
    try:
        body = CheckpointPublished.model_validate_json(data)
        hashes = [bytes.fromhex(text) for text in (body.head_hash, body.tree_root, *body.frontier)]
    except ValueError:
        return None
    return body if all(len(value) == 32 for value in hashes) else None


def _compare_note(row: BindingRow, body: CheckpointPublished, position: int, report: LevelReport) -> None:
    """The note in the event must say what the event says."""
    try:
        said = read_checkpoint(body.note.encode()).checkpoint
    except NoteUnreadableError as exc:
        found = exc.found
    else:
        same = (said.url, said.branch, said.position) == (row.url, row.branch, body.position)
        if same and (said.head_hash.hex(), said.tree_root.hex()) == (body.head_hash, body.tree_root):
            return
        found = json.dumps([said.url, said.branch, said.position, said.head_hash.hex()])
    report.checked += 1
    report.add(
        "CheckpointNoteMismatch",
        checked=f"the note in event {position}",
        expected=f"a checkpoint of this binding at {body.position}, hash {body.head_hash}",
        found=found,
    )


def _frontier(body: CheckpointPublished, root: bytes) -> Frontier | None:
    """The tree at a trusted checkpoint, where the log's account of it leads to the root that was signed."""
    try:
        frontier = Frontier(body.position, [bytes.fromhex(text) for text in body.frontier])
    except ValueError:
        return None
    return frontier if frontier.root() == root else None
