"""Publishing a checkpoint: seal the plans, look at what is new, sign the head, record the note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.audit.bodies import parsed_object
from ledger.audit.checkpoint import Checkpoint, new_checkpoint
from ledger.audit.errors import CheckpointRefusedError, NothingToSignError
from ledger.audit.heads import TrustedCheckpoint
from ledger.audit.merkle import Frontier
from ledger.audit.recorded_notes import checkpoint_body, frontier_of, note_of
from ledger.audit.signed_note import SignedNote, SigningKey, VerifyingKey
from ledger.audit.uncovered import events_behind
from ledger.chain import GENESIS, ChainVerifier
from ledger.events import Body, CheckpointPublished, NewEvent, PlanSealed, new_event
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_BATCH = 100


@dataclass(frozen=True, slots=True)
class Published:
    """A checkpoint that is recorded.

    Attributes:
        position: of the head that it covers.
        event_position: of its event.
        note: the signed text.
        keys: the names of the keys that signed it.
        sealed: how many plans were sealed for it.
        new: False where nothing had happened since the last one, which is this.
    """

    url: str
    branch: str
    position: int
    event_position: int
    note: str
    keys: tuple[str, ...]
    sealed: int
    new: bool


@dataclass(frozen=True, slots=True)
class _Own:
    """A recorded checkpoint that a known key signed."""

    event_position: int
    body: CheckpointPublished


@dataclass(frozen=True, slots=True)
class _Start:
    """Where the last checkpoint ended."""

    position: int
    head: bytes
    frontier: Frontier


async def publish_checkpoint(
    ledger: Ledger,
    row: BindingRow,
    keys: Sequence[SigningKey],
    *,
    known: Sequence[VerifyingKey] = (),
    kept: TrustedCheckpoint | None = None,
) -> Published:
    """Sign the head of a binding and record it.

    What is signed extends what was signed before: the log has to chain from the last checkpoint of a known key to its
    head, and to hold the event of the one that was kept. Only what was appended since is read.

    Args:
        ledger: open, with a role that may append control events.
        row: the binding.
        keys: every one of them signs.
        known: public keys whose signatures are ours as well, such as retired ones; those of ``keys`` always are.
        kept: the newest checkpoint that was kept outside the database.

    Raises:
        CheckpointRefusedError: the log does not extend what was signed, or a recorded checkpoint is none.
        NothingToSignError: the log is empty.
        StoreError: the database.
    """
    last = await _last_own(ledger, row, [*(key.public for key in keys), *known])
    row = await _fresh(ledger, row)
    _require_events(row)
    await _require_extended(ledger, row, kept)
    if last is not None and not events_behind(row.head_position, last.body.position, last.event_position):
        names, note = tuple(last.body.keys), last.body.note
        return Published(row.url, row.branch, last.body.position, last.event_position, note, names, 0, new=False)
    sealed = await _seal_plans(ledger, row)
    row = await _fresh(ledger, row)
    frontier = await _checked(ledger, row, _start(row, last))
    checkpoint = new_checkpoint(row.url, row.branch, row.head_position, root=frontier.root(), head=row.head_hash)
    note = checkpoint.note(list(keys))
    appended = await ledger.append_control(row.id, [_published_event(row, checkpoint, frontier, note, keys)])
    names = tuple(key.name for key in keys)
    return Published(row.url, row.branch, row.head_position, appended.last_position, note, names, sealed, new=True)


async def _last_own(ledger: Ledger, row: BindingRow, known: Sequence[VerifyingKey]) -> _Own | None:
    """The newest recorded checkpoint that a known key signed.

    Others may be true, but who signed them is not known here, so nothing is built on them.
    """
    before: int | None = None
    while marks := await ledger.checkpoints_page(row.id, before=before, limit=1 if before is None else _BATCH):
        for mark in marks:
            body = checkpoint_body(mark.body)
            if body is None:
                raise _refused(row, f"the checkpoint of event {mark.position}", "a body of that kind", "another one")
            read = note_of(row.url, row.branch, body)
            if read is None:
                raise _refused(row, f"the checkpoint of event {mark.position}", "a note that says the same", "another")
            require_no_forgery(row, f"the note in event {mark.position}", read.note, known)
            if read.signers(list(known)):
                return _Own(mark.position, body)
        before = marks[-1].position
    return None


def require_no_forgery(row: BindingRow, what: str, note: SignedNote, known: Sequence[VerifyingKey]) -> None:
    """A note may be of keys that nobody here knows; one that names a known key must be signed by it.

    Raises:
        CheckpointRefusedError: it is not.
    """
    for name in note.forged(known):
        raise _refused(row, f"the signature of {name} on {what}", "one over this text", "another one")


def _require_events(row: BindingRow) -> None:
    if row.head_position == 0:
        raise NothingToSignError(
            checked=f"the log of {row.url} [{row.branch}]",
            expected="an event that could be signed",
            found="none",
            next_action="publish once something was committed",
        )


async def _require_extended(ledger: Ledger, row: BindingRow, kept: TrustedCheckpoint | None) -> None:
    """What was signed and kept outside the database is still there; else a rewritten log would be signed as well."""
    if kept is None:
        return
    found = "no such event" if kept.position else GENESIS.hex()
    async for event in ledger.events(row.id, after=max(kept.position - 1, 0), until=kept.position):
        found = event.hash.hex()
    if found != kept.head_hash.hex():
        what = f"event {kept.position}, which {kept.name} was signed for,"
        raise _refused(row, what, f"hash {kept.head_hash.hex()}", found)


def _published_event(
    row: BindingRow, checkpoint: Checkpoint, frontier: Frontier, note: str, keys: Sequence[SigningKey]
) -> NewEvent:
    body = CheckpointPublished(
        position=checkpoint.position,
        head_hash=checkpoint.head_hash.hex(),
        tree_root=checkpoint.tree_root.hex(),
        frontier=[root.hex() for root in frontier.roots],
        signed_at=checkpoint.text().split("\n")[4].removeprefix("time "),
        keys=[key.name for key in keys],
        note=note,
    )
    # Two that publish at once sign two notes of one head: both are facts, each with an id of its own.
    return _event(row, "checkpoint.published", body, f"{checkpoint.position} {body.signed_at}")


def _start(row: BindingRow, last: _Own | None) -> _Start:
    """The last own checkpoint; without one everything is read from the first event."""
    if last is None:
        return _Start(0, GENESIS, Frontier())
    frontier = frontier_of(last.body, bytes.fromhex(last.body.tree_root))
    if frontier is None:
        raise _refused(row, f"the checkpoint of event {last.event_position}", "the roots of its tree", "others")
    return _Start(last.body.position, bytes.fromhex(last.body.head_hash), frontier)


async def _checked(ledger: Ledger, row: BindingRow, start: _Start) -> Frontier:
    """The frontier at the head, over events that chain to the last checkpoint."""
    verifier = ChainVerifier(row.url, row.branch, start.position, start.head)
    frontier = start.frontier
    async for event in ledger.events(row.id, after=start.position, until=row.head_position):
        for found in verifier.feed(event):
            raise _refused(row, f"the {found.kind} of event {found.position}", found.expected, found.found)
        frontier.append(event.hash)
    if (verifier.position, verifier.head) != (row.head_position, row.head_hash):
        expected = f"position {row.head_position}, hash {row.head_hash.hex()}"
        raise _refused(
            row, "the head of the binding", expected, f"position {verifier.position}, hash {verifier.head.hex()}"
        )
    return frontier


async def _seal_plans(ledger: Ledger, row: BindingRow) -> int:
    """Seal every plan of the binding that is not sealed yet; returns how many."""
    sealed = {
        str((parsed_object(mark.body) or {}).get("plan_checksum"))
        async for mark in ledger.checkpoint_marks(row.id, until=row.head_position)
        if mark.kind == "plan.sealed"
    }
    wanted = [checksum for checksum in await ledger.verified_plans(row.id) if checksum not in sealed]
    for first in range(0, len(wanted), _BATCH):
        events = [
            _event(row, "plan.sealed", await seal_of(ledger, checksum), checksum)
            for checksum in wanted[first : first + _BATCH]
        ]
        await ledger.append_control(row.id, events)
    return len(wanted)


async def seal_of(ledger: Ledger, checksum: str) -> PlanSealed:
    """The seal of a stored plan: the root over its lines, each with its newline.

    Raises:
        PlanNotStoredError: no plan has this checksum.
    """
    tree = Frontier()
    async for line in ledger.stored_plan(checksum):
        tree.append(line)
    return PlanSealed(plan_checksum=checksum, operations_count=tree.size, lines_root=tree.root().hex())


async def _fresh(ledger: Ledger, row: BindingRow) -> BindingRow:
    return await ledger.binding_by_id(row.id) or row


def _event(row: BindingRow, kind: str, body: Body, n: str) -> NewEvent:
    return new_event(kind, body, url=row.url, branch=row.branch, n=n)


def _refused(row: BindingRow, what: str, expected: str, found: str) -> CheckpointRefusedError:
    return CheckpointRefusedError(
        checked=f"{what} of {row.url} [{row.branch}], before it is signed",
        expected=expected,
        found=found,
        next_action="run 'apply-ledger verify' and compare with a checkpoint that is kept elsewhere",
    )
