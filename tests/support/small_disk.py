"""A file system that is as small as a test wants it.

Where this process may mount, it is a file system in memory with so many bytes and inodes. Elsewhere nothing can be
mounted, and the largest size of a file stands for the room that is left: the same writes fail, with another number.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_BLOCK = 4096


@dataclass(frozen=True)
class SmallDisk:
    """A folder on a small file system; ``mounted`` is false where it is an ordinary one."""

    folder: Path
    mounted: bool

    def fill(self) -> None:
        """Leave no room at all."""
        if not self.mounted:
            return
        with (self.folder / ".filler").open("ab", buffering=0) as filler:
            for size in (1024 * 1024, _BLOCK):
                with suppress(OSError):
                    while True:
                        filler.write(bytes(size))

    def free(self) -> None:
        """Give the room back."""
        (self.folder / ".filler").unlink(missing_ok=True)

    def use_up_inodes(self) -> None:
        """Leave no room for a name; there are few of them."""
        with suppress(OSError):
            for number in range(1000 if self.mounted else 0):
                (self.folder / f".name-{number}").touch()

    def forbid_writing(self) -> None:
        """Let it be read alone from now on."""
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True)


@contextmanager
def small_disk(*, kibibytes: int, inodes: int = 10_000) -> Iterator[SmallDisk]:
    """A small file system while the block runs; gone afterwards with all that is on it."""
    with tempfile.TemporaryDirectory(prefix="apply-ledger-disk-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "disk"
        folder.mkdir()
        options = f"size={kibibytes}k,nr_inodes={inodes},mode=0755"
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "apply-ledger-test", str(folder)], capture_output=True, check=False
        )
        try:
            yield SmallDisk(folder, mounted=mounted.returncode == 0)
        finally:
            if mounted.returncode == 0:
                subprocess.run(["umount", "--lazy", str(folder)], check=True)
