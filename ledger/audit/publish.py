"""Publishing a checkpoint: seal the plans, look at what is new, sign the head, record the note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ledger.audit.bodies import parsed_object
from ledger.audit.checkpoint import Checkpoint, new_checkpoint
from ledger.audit.errors import CheckpointRefusedError
from ledger.audit.merkle import Frontier
from ledger.audit.signed_note import SigningKey
from ledger.chain import GENESIS, ChainVerifier
from ledger.events import Body, CheckpointPublished, NewEvent, PlanSealed, new_event
from ledger.store.checkpoints import CheckpointMark
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
class _Start:
    """Where the last checkpoint ended."""

    position: int
    head: bytes
    frontier: Frontier


async def publish_checkpoint(ledger: Ledger, row: BindingRow, keys: Sequence[SigningKey]) -> Published:
    """Sign the head of a binding and record it.

    Only what was appended since the last checkpoint is read; that it chains to it, and to the head, is checked before
    anything is signed.

    Args:
        ledger: open, with a role that may append control events.
        row: the binding.
        keys: every one of them signs.

    Raises:
        CheckpointRefusedError: the log does not chain from the last checkpoint to its head.
        StoreError: the database.
    """
    last = await ledger.last_checkpoint(row.id)
    if last is not None and last.position == row.head_position:
        return _standing(row, last)
    sealed = await _seal_plans(ledger, row)
    row = await _fresh(ledger, row)
    start = _start(row, last)
    frontier = await _checked(ledger, row, start)
    checkpoint = new_checkpoint(row.url, row.branch, row.head_position, root=frontier.root(), head=row.head_hash)
    note = checkpoint.note(list(keys))
    appended = await ledger.append_control(row.id, [_published_event(row, checkpoint, frontier, note, keys)])
    names = tuple(key.name for key in keys)
    return Published(row.url, row.branch, row.head_position, appended.last_position, note, names, sealed, new=True)


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


def _standing(row: BindingRow, last: CheckpointMark) -> Published:
    body = parsed_object(last.body) or {}
    keys = tuple(str(name) for name in body.get("keys", ()))
    return Published(
        row.url, row.branch, int(body.get("position", 0)), last.position, str(body.get("note")), keys, 0, new=False
    )


def _start(row: BindingRow, last: CheckpointMark | None) -> _Start:
    """The frontier of the last checkpoint, where it is one; else everything is read from the first event."""
    if last is not None:
        try:
            body = CheckpointPublished.model_validate_json(last.body)
            frontier = Frontier(body.position, [bytes.fromhex(root) for root in body.frontier])
            if frontier.root().hex() == body.tree_root:
                return _Start(body.position, bytes.fromhex(body.head_hash), frontier)
        except ValueError as exc:
            raise _refused(row, "the last checkpoint", "a body of that kind", "another one") from exc
    return _Start(0, GENESIS, Frontier())


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
    return next(found for found in await ledger.bindings() if found.id == row.id)


def _event(row: BindingRow, kind: str, body: Body, n: str) -> NewEvent:
    return new_event(kind, body, url=row.url, branch=row.branch, n=n)


def _refused(row: BindingRow, what: str, expected: str, found: str) -> CheckpointRefusedError:
    return CheckpointRefusedError(
        checked=f"{what} of {row.url} [{row.branch}], before it is signed",
        expected=expected,
        found=found,
        next_action="run 'apply-ledger verify' and compare with a checkpoint that is kept elsewhere",
    )
