"""An export as one archive (tar, POSIX pax), written piece by piece to whoever takes it.

The manifest comes last, as it is written last: an archive that was cut off has none, and is no export. Whoever packs
needs no room beside the export, and gives back what an export takes as it goes.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

from ledger.audit.export.layout import MANIFEST, files_below
from ledger.audit.note_files import folder_name
from ledger.plan.files import write_failures_of
from ledger.store.records import BindingRow

PIECE = 256 * 1024
"""Bytes that are written at once; a whole number of blocks."""

_MODE = 0o644


def archive_name(row: BindingRow) -> str:
    """The name of the folder in the archive: which binding, up to which position."""
    return f"{folder_name(row.url, row.branch)}-{row.head_position}"


def write_archive(root: Path, name: str, write: Callable[[bytes], object]) -> None:
    """Pack an export that is whole; each file of it is removed once it was packed.

    Args:
        root: the folder of the export.
        name: of the folder in the archive.
        write: takes the archive, some :data:`PIECE` bytes at a time; what it raises ends the packing, and what was
            written until then has no end that a reader of archives would take for one.

    Raises:
        PlanWriteFailedError: a file of the export cannot be read.
    """
    with tarfile.open(mode="w|", fileobj=_Sink(write), format=tarfile.PAX_FORMAT, bufsize=PIECE) as archive:
        for path in (*files_below(root), root / MANIFEST):
            with write_failures_of(path), path.open("rb") as file:
                entry = archive.gettarinfo(arcname=f"{name}/{path.relative_to(root).as_posix()}", fileobj=file)
                # Who serves the ledger, and under which account, is not part of the record.
                entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mode = _MODE
                archive.addfile(entry, file)
            path.unlink()


def comment(text: str) -> bytes:
    """Blocks that may stand in front of an archive and hold no file: every reader of pax archives passes over them."""
    return tarfile.TarInfo.create_pax_global_header({"comment": text})


class _Sink(io.BufferedIOBase):
    """What tarfile writes to."""

    def __init__(self, take: Callable[[bytes], object]) -> None:
        self._take = take

    def writable(self) -> bool:
        """Always."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override] # typeshed's Buffer is 3.12's
        """All of the data, at once."""
        self._take(bytes(data))
        return len(data)
