"""Signed notes as files: a folder for each binding, a file for each head. They are evidence: none is ever replaced."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from ledger.audit.checkpoint import read_checkpoint
from ledger.audit.errors import CheckpointRefusedError, NoteContradictsError, NoteUnreadableError
from ledger.audit.heads import TrustedCheckpoint
from ledger.audit.publish import Published, publish_checkpoint, require_no_forgery
from ledger.audit.signed_note import MAX_NOTE_BYTES, SigningKey, VerifyingKey
from ledger.plan.errors import PlanAlreadyWrittenError
from ledger.plan.files import write_durably, write_failures_of
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow

_NAME = re.compile(r"^([0-9]{12,19})(?:-[0-9a-f]{8})?\.note$")


async def publish_and_keep(
    ledger: Ledger, row: BindingRow, keys: Sequence[SigningKey], folder: Path, *, known: Sequence[VerifyingKey] = ()
) -> tuple[Published, Path]:
    """Publish a checkpoint that extends the newest one below ``folder``, and write it there; returns where.

    Args:
        ledger: open, with a role that may append control events.
        row: the binding.
        keys: every one of them signs.
        folder: where the notes of all bindings are.
        known: public keys whose signatures are ours as well, such as retired ones.

    Raises:
        CheckpointRefusedError: the log does not extend what was signed, or a note was changed.
        NothingToSignError: the log is empty.
        NoteContradictsError: another note of this position is there.
        PlanWriteFailedError: the folder cannot be read, or the file cannot be written.
        StoreError: the database.
    """
    ours = [*(key.public for key in keys), *known]
    kept = await asyncio.to_thread(newest_note, folder, row, ours)
    done = await publish_checkpoint(ledger, row, keys, known=known, kept=kept)
    return done, await asyncio.to_thread(write_note, folder, done)


def newest_note(folder: Path, row: BindingRow, known: Sequence[VerifyingKey]) -> TrustedCheckpoint | None:
    """The newest note of a binding below ``folder`` that a known key signed; those of other keys are passed over.

    Raises:
        CheckpointRefusedError: a file on the way to it is no note of its name's position, or names a known key that did
            not sign it.
        PlanWriteFailedError: the folder cannot be read.
    """
    place = folder / folder_name(row.url, row.branch)
    with write_failures_of(place):
        names = sorted((path.name for path in place.iterdir()), reverse=True) if place.is_dir() else []
    for name, number in ((name, found[1]) for name in names if (found := _NAME.fullmatch(name))):
        data = _read(place / name)
        try:
            read = read_checkpoint(data)
        except NoteUnreadableError as exc:
            raise _changed(place / name, exc.expected, exc.found) from exc
        said = read.checkpoint
        if (said.url, said.branch, said.position) != (row.url, row.branch, int(number)):
            raise _changed(place / name, f"a note of {row.binding} at {int(number)}", f"one at {said.position}")
        require_no_forgery(row, str(place / name), read.note, known)
        if signers := read.signers(list(known)):
            return TrustedCheckpoint(said, str(place / name), tuple(signers))
    return None


def write_note(folder: Path, done: Published) -> Path:
    """Write a published checkpoint below ``folder``; returns where. Writing the same one again changes nothing.

    Two notes of one head, signed at another time or by other keys, both stay.

    Raises:
        NoteContradictsError: there is a note of this position that says something else.
        PlanWriteFailedError: the file cannot be written.
    """
    place = folder / folder_name(done.url, done.branch)
    with write_failures_of(place):
        place.mkdir(parents=True, exist_ok=True)
    path, data = place / f"{done.position:012}.note", done.note.encode()
    try:
        write_durably(path, data, replace=False)
    except PlanAlreadyWrittenError:
        standing = _read(path)
        if standing == data:
            return path
        _require_same_head(path, standing, data)
        path = place / f"{done.position:012}-{hashlib.sha256(data).hexdigest()[:8]}.note"
        write_durably(path, data)
    return path


def _require_same_head(path: Path, standing: bytes, data: bytes) -> None:
    new = read_checkpoint(data).checkpoint
    expected = f"head {new.head_hash.hex()} at {new.position}, as it was signed now"
    try:
        old = read_checkpoint(standing).checkpoint
    except NoteUnreadableError as exc:
        found = exc.found
    else:
        if (old.url, old.branch, old.position, old.head_hash, old.tree_root) == (
            new.url,
            new.branch,
            new.position,
            new.head_hash,
            new.tree_root,
        ):
            return
        found = f"head {old.head_hash.hex()} at {old.position}"
    raise NoteContradictsError(
        checked=f"the note {path}, before another one is written",
        expected=expected,
        found=found,
        next_action="keep this file and the note in the event: together they prove that two histories were signed; then"
        " run `apply-ledger verify --checkpoint` with this file",
    )


def folder_name(url: str, branch: str) -> str:
    """A name for the files of one binding: readable, and never that of another one."""
    readable = re.sub(r"[^a-z0-9]+", "-", f"{url.split('://')[-1]}-{branch}".lower()).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(f'{url} {branch}'.encode()).hexdigest()[:8]}"


def _read(path: Path) -> bytes:
    with write_failures_of(path), path.open("rb") as file:
        return file.read(MAX_NOTE_BYTES + 1)


def _changed(path: Path, expected: str, found: str) -> CheckpointRefusedError:
    return CheckpointRefusedError(
        checked=f"the kept note {path}, before the next one is signed",
        expected=expected,
        found=found,
        next_action="find out who changed the file, and put a copy of it back that was kept elsewhere",
    )
