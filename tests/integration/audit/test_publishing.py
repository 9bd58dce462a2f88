"""What a signer signs: a log that extends what was signed before, up to a head that is then counted as covered (G8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consumers.service.checkpoints import CheckpointKeeper, CheckpointPolicy
from ledger.audit import Level, Status, verify_binding
from ledger.audit.checkpoint import Checkpoint
from ledger.audit.errors import CheckpointRefusedError, NoteContradictsError, NothingToSignError
from ledger.audit.heads import trusted_checkpoint
from ledger.audit.merkle import EMPTY_ROOT
from ledger.audit.note_files import publish_and_keep, write_note
from ledger.audit.publish import Published, publish_checkpoint, seal_of
from ledger.audit.signed_note import SigningKey
from ledger.audit.uncovered import events_uncovered
from ledger.binding import DestinationBinding
from ledger.chain import GENESIS
from ledger.events import NewEvent, new_event
from ledger.exit_codes import ExitCode
from ledger.store.ledger import Ledger
from ledger.store.records import Appended, BindingRow
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to
from tests.support.tampering import rechain, unguarded
from tests.support.told_story import CREATED

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = SigningKey("other", Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33))))


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as opened:
        yield opened


async def _row(ledger: Ledger) -> BindingRow:
    row = await ledger.binding(BINDING)
    assert row is not None
    return row


async def _append(ledger: Ledger, n: str) -> None:
    """Something happens: the seal of one plan is recorded again."""
    row, seal = await _row(ledger), await seal_of(ledger, CREATED.checksum)
    await ledger.append_control(row.id, [new_event("plan.sealed", seal, url=row.url, branch=row.branch, n=n)])


class _WhileSigning:
    """A ledger to which something is appended between the reading of a head and the record of its checkpoint."""

    def __init__(self, ledger: Ledger, happens: Callable[[], Awaitable[None]]) -> None:
        self._ledger, self._happens = ledger, happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def append_control(self, binding_id: int, events: Sequence[NewEvent]) -> Appended:
        if any(event.kind == "checkpoint.published" for event in events):
            await self._happens()
        return await self._ledger.append_control(binding_id, events)


async def _uncovered(ledger: Ledger) -> int:
    row = await _row(ledger)
    return events_uncovered(row.head_position, await ledger.last_checkpoint(row.id))


@pytest.mark.rules("G8")
async def test_g08_what_is_appended_while_a_head_is_signed_is_signed_next(ledger: Ledger, tmp_path: Path) -> None:
    assert await _uncovered(ledger) == (await _row(ledger)).head_position
    busy: Any = _WhileSigning(ledger, lambda: _append(ledger, "meanwhile"))
    done = await publish_checkpoint(busy, await _row(ledger), [KEY])
    assert done.event_position == done.position + 2
    # what came meanwhile, and the event of the checkpoint behind it
    assert await _uncovered(ledger) == 2

    keeper = CheckpointKeeper(CheckpointPolicy(2, None, lambda: [KEY], tmp_path), lambda: {BINDING.normalised()})
    assert await keeper.is_due(ledger, await _row(ledger))
    again = await publish_checkpoint(ledger, await _row(ledger), [KEY])
    assert (again.new, again.position) == (True, done.event_position)
    assert await _uncovered(ledger) == 0
    assert not await keeper.is_due(ledger, await _row(ledger))
    assert not (await publish_checkpoint(ledger, await _row(ledger), [KEY])).new


async def _rewritten(dsns: dict[str, str]) -> None:
    async with connection_to(dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("delete from ledger.event where kind in ('plan.sealed', 'checkpoint.published')")
        await admin.execute("update ledger.event set body = replace(body, 'node-1', 'node-9')")
        await rechain(admin)


@pytest.mark.rules("G8")
async def test_g08_a_rewritten_log_is_not_signed_by_whoever_signed_another(
    told_dsns: dict[str, str], ledger: Ledger, tmp_path: Path
) -> None:
    done, path = await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)
    kept = path.read_bytes()
    await _rewritten(told_dsns)
    with pytest.raises(CheckpointRefusedError, match=r"which .*\.note was signed for") as refused:
        await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)
    assert refused.value.exit_code is ExitCode.TAMPERED
    # also when the rewritten log has grown to the same position and beyond
    for number in range(8):
        await _append(ledger, f"grown-{number}")
    assert (await _row(ledger)).head_position > done.position
    with pytest.raises(CheckpointRefusedError):
        await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)
    assert [file.read_bytes() for file in tmp_path.glob("*/*")] == [kept]
    assert await ledger.last_checkpoint((await _row(ledger)).id) is None


_CHANGED = {
    "another position": "jsonb_set(body::jsonb, '{position}', '3')",
    "no position": "jsonb_set(body::jsonb, '{position}', '\"x\"')",
    "another hash": "jsonb_set(body::jsonb, '{head_hash}', to_jsonb(repeat('0', 64)))",
    "another frontier": "jsonb_set(body::jsonb, '{frontier}', '[]')",
    "another note": "jsonb_set(body::jsonb, '{note}', '\"x\"')",
    "another signature": "jsonb_set(body::jsonb, '{note}',"
    " to_jsonb(left(body::jsonb->>'note', -12) || 'AAAAAAAAAA=' || chr(10)))",
}


@pytest.mark.rules("G8", "G11")
@pytest.mark.parametrize("change", _CHANGED.values(), ids=_CHANGED)
async def test_g08_a_checkpoint_of_ours_that_was_changed_in_the_log_is_built_on_by_nobody(
    told_dsns: dict[str, str], ledger: Ledger, change: str
) -> None:
    await publish_checkpoint(ledger, await _row(ledger), [KEY])
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        done = await admin.execute(
            f"update ledger.event set body = ({change})::text where kind = 'checkpoint.published'"
            f" and ({change})::jsonb <> body::jsonb"
        )
        assert done == "UPDATE 1"
        await rechain(admin)
    await _append(ledger, "later")
    with pytest.raises(CheckpointRefusedError):
        await publish_checkpoint(ledger, await _row(ledger), [KEY])


@pytest.mark.rules("G8")
async def test_g08_nothing_is_built_on_a_checkpoint_of_a_key_that_nobody_here_knows(
    told_dsns: dict[str, str], ledger: Ledger
) -> None:
    await publish_checkpoint(ledger, await _row(ledger), [OTHER])
    assert not (await publish_checkpoint(ledger, await _row(ledger), [KEY], known=[OTHER.public])).new
    own = await publish_checkpoint(ledger, await _row(ledger), [KEY])
    assert own.new
    # behind a foreign one, what we signed is where we go on, so that what lies between is read as well
    await publish_checkpoint(ledger, await _row(ledger), [OTHER])
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute(
            "update ledger.event set recorded_at = recorded_at + interval '1 second' where position = $1",
            own.event_position,
        )
    await _append(ledger, "later")
    with pytest.raises(CheckpointRefusedError, match="hash"):
        await publish_checkpoint(ledger, await _row(ledger), [KEY])


@pytest.mark.rules("G8")
async def test_g08_a_note_that_contradicts_a_kept_one_does_not_take_its_place(ledger: Ledger, tmp_path: Path) -> None:
    done, path = await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)
    kept = path.read_bytes()
    row = await _row(ledger)
    forged = Checkpoint(row.url, row.branch, done.position, b"r" * 32, b"h" * 32, datetime.now(UTC)).note([KEY])
    with pytest.raises(NoteContradictsError, match="two histories were signed") as refused:
        write_note(tmp_path, replace(done, note=forged))
    assert refused.value.exit_code is ExitCode.TAMPERED
    assert [file.read_bytes() for file in tmp_path.glob("*/*")] == [kept]


async def test_two_notes_of_one_head_both_stay(ledger: Ledger, tmp_path: Path) -> None:
    done, path = await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)
    read = trusted_checkpoint(done.note.encode(), "kept", [KEY.public]).checkpoint
    later = replace(done, note=replace(read, signed_at=datetime.now(UTC)).note([KEY, OTHER]))
    other = write_note(tmp_path, later)
    assert other != path
    assert write_note(tmp_path, done) == path
    assert write_note(tmp_path, later) == other
    assert sorted(tmp_path.glob("*/*")) == sorted([path, other])
    assert not (await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path))[0].new


@pytest.mark.rules("G8")
@pytest.mark.parametrize("text", ["", "no note\n", None], ids=["empty", "text", "another position"])
async def test_g08_a_kept_note_that_was_changed_keeps_the_next_one_from_being_signed(
    ledger: Ledger, tmp_path: Path, text: str | None
) -> None:
    done, path = await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)
    path.write_text(done.note.replace(f"\n{done.position}\n", "\n3\n") if text is None else text, encoding="utf-8")
    await _append(ledger, "later")
    with pytest.raises(CheckpointRefusedError, match="put a copy of it back"):
        await publish_and_keep(ledger, await _row(ledger), [KEY], tmp_path)


async def _empty(ledger: Ledger) -> BindingRow:
    binding = DestinationBinding(url="http://empty.example", branch="main")
    await ledger.register_binding(binding)
    row = await ledger.binding(binding)
    assert row is not None
    assert row.head_position == 0
    return row


@pytest.mark.rules("G8")
async def test_g08_a_log_without_an_event_is_not_signed_and_agrees_with_what_was_signed_of_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    row = await _empty(ledger)
    with pytest.raises(NothingToSignError):
        await publish_and_keep(ledger, row, [KEY], tmp_path)
    empty = Checkpoint(row.url, row.branch, 0, EMPTY_ROOT, GENESIS, datetime.now(UTC))
    kept = trusted_checkpoint(empty.note([KEY]).encode(), "empty.note", [KEY.public])
    for start in (None, kept):
        report = await verify_binding(ledger, row.binding, checkpoints=[kept], resume_from=start)
        assert report.findings == ()
        assert report.level(Level.CHECKPOINTS).status is Status.HELD
    false = replace(empty, head_hash=b"h" * 32).note([KEY])
    report = await verify_binding(
        ledger, row.binding, checkpoints=[trusted_checkpoint(false.encode(), "false.note", [KEY.public])]
    )
    assert [finding.name for finding in report.findings] == ["CheckpointMismatch"]


def _published(row: BindingRow, note: str, position: int) -> Published:
    return Published(row.url, row.branch, position, position + 1, note, ("tests",), 0, new=True)


async def test_signing_goes_on_behind_a_note_of_an_empty_log(ledger: Ledger, tmp_path: Path) -> None:
    row = await _row(ledger)
    note = Checkpoint(row.url, row.branch, 0, EMPTY_ROOT, GENESIS, datetime.now(UTC)).note([KEY])
    write_note(tmp_path, _published(row, note, 0))
    assert (await publish_and_keep(ledger, row, [KEY], tmp_path))[0].new
