"""Signed heads beside the events that go by: those that were kept elsewhere, and those that the log itself recorded.

One that was kept elsewhere and was signed by a key that the auditor trusts is what a rewritten ledger cannot agree
with: it alone makes the level of checkpoints hold, up to its position. Those in the log are compared as well, because
they are part of what was appended; but whoever rewrites a log takes them out, so they are told and prove nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

from ledger.audit.checkpoint import Checkpoint, ReadCheckpoint, read_checkpoint
from ledger.audit.errors import CheckpointOfNoBindingError, NoteNotTrustedError, NoTrustedKeyError
from ledger.audit.merkle import Frontier
from ledger.audit.recorded_notes import RecordedNotes, Seal, checkpoint_body, frontier_of, note_of
from ledger.audit.report import COMPARE_COPIES, LevelReport
from ledger.audit.signed_note import VerifyingKey
from ledger.audit.source import AuditSource
from ledger.audit.uncovered import events_behind
from ledger.chain import GENESIS
from ledger.events import CheckpointPublished, PlanSealed, StoredEvent
from ledger.store.checkpoints import CheckpointMark
from ledger.store.records import BindingRow

_ASK_AGAIN = "have note and public key given to you again by whoever keeps them; this one says nothing of the ledger"


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


def require_signed(trusted: TrustedCheckpoint, keys: Sequence[VerifyingKey]) -> None:
    """A note of another key, or one that was changed, is trouble with the evidence and none with the ledger.

    Raises:
        NoteNotTrustedError: none of the keys signed it.
    """
    if not trusted.signers:
        raise NoteNotTrustedError(
            checked=f"the signature of {trusted.name}",
            expected=f"one by {', '.join(f'{key.name}+{key.key_hash.hex()}' for key in keys)}",
            found="none: the note was changed since it was signed, or another key signed it",
            next_action=_ASK_AGAIN,
        )


@dataclass(frozen=True, slots=True)
class _Claim:
    """What is said of the event at a position: its hash, and the root of the tree up to it where that is looked at.

    ``kept`` is the checkpoint that says it; None where the log itself does.
    """

    head_hash: bytes
    tree_root: bytes | None
    says: str
    kept: TrustedCheckpoint | None = None


@dataclass(slots=True)
class Heads:
    """Compares claims with the events as they go by."""

    report: LevelReport
    claims: dict[int, list[_Claim]]
    head_position: int
    tree: Frontier | None = None
    seals: dict[str, list[Seal]] = field(default_factory=dict)
    recorded: RecordedNotes = field(default_factory=RecordedNotes)
    _seen: set[int] = field(default_factory=set)
    _sorted: list[int] = field(default_factory=list)
    _furthest: TrustedCheckpoint | None = None

    def feed(self, event: StoredEvent) -> None:
        """Take the next event."""
        if self.tree is not None:
            self.tree.append(event.hash)
        for claim in self.claims.get(event.position, ()):
            self._seen.add(event.position)
            self._compare(event.position, claim, event.hash)

    def claims_among(self, first: int, last: int) -> bool:
        """Whether anything is claimed about an event between two positions."""
        if len(self._sorted) != len(self.claims):
            self._sorted = sorted(self.claims)
        at = bisect_left(self._sorted, first)
        return at < len(self._sorted) and self._sorted[at] <= last

    def passed(self, hashes: Sequence[bytes]) -> None:
        """Take events that nothing is claimed about."""
        if self.tree is not None:
            self.tree.extend(hashes)

    def begin(self) -> None:
        """Claims about a log without an event are about what the first event chains to."""
        for claim in self.claims.get(0, ()):
            self._seen.add(0)
            self._compare(0, claim, GENESIS)

    def finish(self) -> None:
        """Claims about events that did not go by are about events that are not there; then say how far they reach."""
        for position, claims in sorted(self.claims.items()):
            for claim in claims if position not in self._seen else ():
                self._count(claim)
                self.report.add(
                    "CheckpointBeyondHead",
                    checked=f"{claim.says} at position {position}",
                    expected=f"an event with hash {claim.head_hash.hex()}",
                    found=f"no such event; the head is at {self.head_position}",
                    position=self.head_position + 1,
                    after=min(self.covered_to or 0, self.head_position),
                    next_action=COMPARE_COPIES,
                )
        if self.recorded.count:
            self.report.notes.append(self.recorded.told())
        if self._furthest is not None:
            self._tell_reach(self._furthest)
        self.report.ended()

    def compare_kept(self, kept: TrustedCheckpoint, found: bytes | None) -> None:
        """Compare with the event at the position of one that was kept, found apart from those that go by."""
        claim = _Claim(kept.head_hash, None, f"the checkpoint {kept.name}", kept)
        self._compare(kept.position, claim, found)

    def _tell_reach(self, kept: TrustedCheckpoint) -> None:
        signed = f"{kept.name}, signed by {', '.join(kept.signers)}"
        covered = f"events 1 to {kept.position:,}" if kept.position else "no event"
        self.report.notes.append(f"{covered}: covered by {signed}")
        own = self.recorded.events.get(kept.position)
        later = f"they came after {kept.name} was signed, and no signed head that was given covers them"
        if events_behind(self.head_position, kept.position, own):
            self.report.unchecked.append(f"events {kept.position + 1:,} to {self.head_position:,}: {later}")
        elif kept.position < self.head_position:
            self.report.notes.append(f"event {own:,}: not covered; it records that {kept.name} was signed")

    @property
    def covered_to(self) -> int | None:
        """Up to which event the log agrees with a signed head that was given; None where it agrees with none."""
        return None if self._furthest is None else self._furthest.position

    def _count(self, claim: _Claim) -> None:
        if claim.kept is not None:
            self.report.checked += 1

    def _compare(self, position: int, claim: _Claim, found: bytes | None) -> None:
        """A hash is that of the event and of all before it, so what it says is where the log agrees, not where not."""
        self._count(claim)
        before, after = self.report.total, min(self.covered_to or 0, max(position - 1, 0))
        if found != claim.head_hash:
            self.report.add(
                "CheckpointMismatch",
                checked=f"{claim.says} at position {position}",
                expected=f"an event with hash {claim.head_hash.hex()}",
                found="no such event" if found is None else f"{found.hex()}; {_between(after, position)}",
                position=position,
                after=after,
                next_action=COMPARE_COPIES,
            )
        root = None if self.tree is None or claim.tree_root is None else self.tree.root()
        if root is not None and root != claim.tree_root:
            self.report.add(
                "CheckpointTreeMismatch",
                checked=f"{claim.says} at position {position}",
                expected=f"the root {(claim.tree_root or b'').hex()} over all events up to it",
                found=f"{root.hex()}; {_between(after, position)}",
                position=position,
                after=after,
                next_action=COMPARE_COPIES,
            )
        kept = claim.kept
        if kept is not None and kept.signers and self.report.total == before:
            reached = -1 if self._furthest is None else self._furthest.position
            self._furthest = kept if position > reached else self._furthest


def _between(after: int, position: int) -> str:
    """Where a log differs from what was signed of an event."""
    if after:
        return f"the log differs from what was signed somewhere in the events {after + 1:,} to {position:,}"
    return f"the log differs from what was signed at or before event {position:,}"


async def recorded_heads(
    ledger: AuditSource,
    row: BindingRow,
    kept: Sequence[TrustedCheckpoint],
    resume_from: TrustedCheckpoint | None,
    report: LevelReport,
    keys: Sequence[VerifyingKey] = (),
) -> Heads:
    """The claims of kept and of recorded checkpoints, to be compared with the events behind ``resume_from``.

    Args:
        ledger: the source.
        row: the binding with the head up to which is verified.
        kept: checkpoints of this binding that were kept elsewhere.
        resume_from: events up to it are trusted.
        report: of the level of checkpoints.
        keys: that are known; recorded notes are named by them.
    """
    after = 0 if resume_from is None else resume_from.position
    heads = Heads(report, {}, row.head_position)
    frontier: Frontier | None = Frontier() if after == 0 else None
    async for mark in ledger.checkpoint_marks(row.id, until=row.head_position):
        if mark.kind == "plan.sealed":
            _take_seal(heads, mark.body)
        elif (body := _recorded_body(mark, row, heads, keys)) is not None:
            if resume_from is not None and after and body.position == after:
                frontier = frontier_of(body, resume_from.checkpoint.tree_root) or frontier
            if body.position > after or after == 0:
                says = f"the checkpoint of event {mark.position}"
                claim = _Claim(bytes.fromhex(body.head_hash), bytes.fromhex(body.tree_root), says)
                heads.claims.setdefault(body.position, []).append(claim)
    await _take_kept(ledger, row, kept, resume_from, heads)
    if heads.claims:
        heads.tree = frontier
        if frontier is None:
            report.unchecked.append("the trees of later checkpoints: they need every event from the first one on")
    heads.begin()
    return heads


async def _take_kept(
    ledger: AuditSource,
    row: BindingRow,
    kept: Sequence[TrustedCheckpoint],
    resume_from: TrustedCheckpoint | None,
    heads: Heads,
) -> None:
    """Those among the events that go by are compared as they do; the others with what stands at their place."""
    after = 0 if resume_from is None else resume_from.position
    given = kept if resume_from is None or resume_from in kept else (*kept, resume_from)
    for trusted in sorted(given, key=lambda known: known.position):  # one that differs names the last that agreed
        _require_signed(trusted, heads.report)
        if trusted.position > after or after == 0:
            says = f"the checkpoint {trusted.name}"
            claim = _Claim(trusted.head_hash, trusted.checkpoint.tree_root, says, trusted)
            heads.claims.setdefault(trusted.position, []).append(claim)
            continue
        heads.compare_kept(trusted, await _hash_at(ledger, row, trusted.position))
        if trusted != resume_from:
            heads.report.unchecked.append(
                f"the tree of {trusted.name}: it stands before the place at which reading began; its event was compared"
            )


async def _hash_at(ledger: AuditSource, row: BindingRow, position: int) -> bytes | None:
    """The hash of an event; None where there is none, or none that any program can read."""
    if position == 0:
        return GENESIS
    found = None
    try:
        async for event in ledger.events(row.id, after=position - 1, until=position):
            found = event.hash
    except (OverflowError, ValueError):
        return None
    return found


def _take_seal(heads: Heads, data: bytes) -> None:
    try:
        seal = PlanSealed.model_validate_json(data)
    except ValueError:
        return  # the catalogue names it
    heads.seals.setdefault(seal.plan_checksum, []).append(Seal(seal.operations_count, seal.lines_root))


def _require_signed(trusted: TrustedCheckpoint, report: LevelReport) -> None:
    if not trusted.signers:
        report.add(
            "CheckpointNotSigned",
            checked=f"the signature of {trusted.name}",
            expected="one by a key that is trusted",
            found="none; the file was changed, or another key signed it",
            next_action=_ASK_AGAIN,
        )


def _recorded_body(
    mark: CheckpointMark, row: BindingRow, heads: Heads, keys: Sequence[VerifyingKey]
) -> CheckpointPublished | None:
    """What an event of the log says of a signed head; None where it is no such event."""
    report, body = heads.report, checkpoint_body(mark.body)
    if body is None:
        report.add(
            "CheckpointBodyInvalid",
            checked=f"the checkpoint of event {mark.position}",
            expected="a position, hashes of 32 bytes and a note",
            found="another body",
            position=mark.position,
        )
        return None
    read = _compare_note(row, body, mark.position, report)
    signers: list[str] = []
    if read is not None:
        signers = read.signers(list(keys))
        for name in read.note.forged(keys):
            report.add(
                "CheckpointNotSigned",
                checked=f"the note in event {mark.position}",
                expected=f"a signature of {name}, which it names",
                found="another one",
                position=mark.position,
            )
    heads.recorded.take(body.position, mark.position, signers)
    return body


def _compare_note(
    row: BindingRow, body: CheckpointPublished, position: int, report: LevelReport
) -> ReadCheckpoint | None:
    """The note in the event must say what the event says."""
    read = note_of(row.url, row.branch, body)
    if read is None:
        report.add(
            "CheckpointNoteMismatch",
            checked=f"the note in event {position}",
            expected=f"a checkpoint of this binding at {body.position}, hash {body.head_hash}",
            found="another text",
            position=position,
        )
    return read
