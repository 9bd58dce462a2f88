"""What audits do, on their own threads: the functions behind the commands, handing over what they make as it comes."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.api.audits import Audit, Work
from ledger.api.errors import ExportTooLargeError
from ledger.api.streaming import KEEP_ALIVE
from ledger.audit.export.archive import archive_name, comment, write_archive
from ledger.audit.export.layout import size_below
from ledger.audit.heads import TrustedCheckpoint
from ledger.audit.proof import proof_file, prove_operation
from ledger.audit.report import VerifyReport
from ledger.audit.signed_note import VerifyingKey
from ledger.audit.state import change_records, state_records
from ledger.audit.verify import verify_binding
from ledger.plan.files import write_failures_of
from ledger.plan.private_copy import copy_folder
from ledger.plan.private_folder import private_folder
from ledger.record_stream import record_line, stream_head
from ledger.store.records import BindingRow

PIECE = 64 * 1024
"""Bytes of lines that are handed over at once."""

STATE, DIFF = "state", "state-diff"
_LOOK_EVERY = 1.0
"""Seconds between two looks at how much room an export takes."""

Records = AsyncGenerator[dict[str, Any], None]


def end_line(stream: str, records: int) -> bytes:
    """The last line of a stream that is whole."""
    return record_line({"stream": stream, "complete": True, "records": records}).encode()


def broken_line(stream: str, problem: dict[str, Any]) -> bytes:
    """The last line of a stream that ended before its time."""
    return record_line({"stream": stream, "complete": False, "problem": problem}).encode()


def states(row: BindingRow, until: int, kind: str | None) -> Work[None]:
    """``replay --state`` as lines."""

    async def work(audit: Audit[None]) -> None:
        async with audit.ledger() as ledger:
            await _tell(audit, STATE, state_records(ledger, row, until=until, kind=kind, progress=audit.progress))

    return work


def changes(row: BindingRow, first: int, second: int, kind: str | None) -> Work[None]:
    """``replay --diff`` as lines."""

    async def work(audit: Audit[None]) -> None:
        async with audit.ledger() as ledger:
            records = change_records(ledger, row, first=first, second=second, kind=kind, progress=audit.progress)
            await _tell(audit, DIFF, records)

    return work


async def _tell(audit: Audit[None], stream: str, records: Records) -> None:
    """The lines that the command writes, and behind them one that says that these were all."""
    lines, count = bytearray(), 0
    async with aclosing(records):
        async for record in records:
            lines += record_line(record).encode() if count else f"{stream_head(stream)}{record_line(record)}".encode()
            count += 1
            if len(lines) >= PIECE:
                audit.say(bytes(lines))
                lines.clear()
    if not count:
        lines += stream_head(stream).encode()
    audit.say(bytes(lines) + end_line(stream, count))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verification compares with: checkpoints that were kept, the one to resume from, keys that are known."""

    kept: Sequence[TrustedCheckpoint]
    start: TrustedCheckpoint | None
    keys: Sequence[VerifyingKey]


def verification(row: BindingRow, evidence: Evidence) -> Work[VerifyReport]:
    """``verify``."""

    async def work(audit: Audit[VerifyReport]) -> VerifyReport:
        async with audit.ledger() as ledger:
            return await verify_binding(
                ledger,
                row.binding,
                progress=audit.progress,
                checkpoints=evidence.kept,
                resume_from=evidence.start,
                keys=evidence.keys,
            )

    return work


def proof(row: BindingRow, run_id: str, operation_id: str) -> Work[bytes]:
    """``prove``: the bytes of its file."""

    async def work(audit: Audit[bytes]) -> bytes:
        async with audit.ledger() as ledger:
            return proof_file(await prove_operation(ledger, row, run_id, operation_id))

    return work


def export(row: BindingRow, *, group: int, lines: bool, most_bytes: int) -> Work[None]:
    """``export`` as an archive: made in a folder of its own first, because a table's end says where its parts are."""

    async def work(audit: Audit[None]) -> None:
        from ledger.audit.export.writing import export_binding  # with all of pyarrow, which nothing else here needs

        with ExitStack() as stack:
            with write_failures_of(temporary := copy_folder()):
                root = stack.enter_context(private_folder(temporary))
            guard = _ExportGuard(audit, root, most_bytes)
            async with audit.ledger() as ledger:
                await export_binding(ledger, row, root, group=group, lines=lines, progress=guard.told)
            guard.look()
            write_archive(root, archive_name(row), audit.say)

    return work


@dataclass(slots=True)
class _ExportGuard:
    """Watches an export while it is made: that it is wanted, how much room it takes, that its reader hears of it."""

    audit: Audit[None]
    root: Path
    most: int
    clock: Callable[[], float] = time.monotonic
    looked: float = field(init=False)
    said: float = field(init=False)

    def __post_init__(self) -> None:
        self.looked = self.said = self.clock()

    def told(self, done: int, total: int) -> None:
        """The export is so far.

        Raises:
            asyncio.CancelledError: it was ended.
            ExportTooLargeError: it takes too much room.
        """
        self.audit.require_wanted()
        now = self.clock()
        if now - self.looked >= _LOOK_EVERY:
            self.looked = now
            self.look()
        if now - self.said >= KEEP_ALIVE:  # whoever stands in between takes a silent connection for dead
            self.said = now
            self.audit.say(comment(f"{done} of {total} events"))

    def look(self) -> None:
        """Refuse an export that takes too much room.

        Raises:
            ExportTooLargeError: it does.
        """
        size = size_below(self.root)
        if size > self.most:
            raise ExportTooLargeError(
                checked="the files of this export",
                expected=f"at most {self.most:,} bytes",
                found=f"{size:,} already",
                next_action="use `apply-ledger export` beside the ledger, or raise max_export_bytes in the settings",
            )
