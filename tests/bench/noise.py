"""How quiet the machine is: a fixed loop and a fixed number of writes to disk, before and after each case."""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_LOOPS, _SYNCS = 15, 100
_BLOCK = b"\x00" * 8192
_DOCUMENT = json.dumps({f"key {number}": list(range(20)) for number in range(60)})


@dataclass(frozen=True, slots=True)
class Noise:
    """Seconds of each round of the fixed loop and of each fdatasync."""

    loops: tuple[float, ...]
    syncs: tuple[float, ...]

    def __add__(self, other: Noise) -> Noise:
        return Noise(self.loops + other.loops, self.syncs + other.syncs)

    @property
    def loop_spread(self) -> float:
        """By how much the slowest round of the loop exceeds the fastest, as a fraction: 0 on a quiet machine."""
        return max(self.loops) / min(self.loops) - 1

    @property
    def loop_median(self) -> float:
        """Seconds of the middle round: tells machines apart."""
        return statistics.median(self.loops)

    @property
    def sync_median(self) -> float:
        """Seconds of the middle fdatasync of one block: the floor of a durable commit."""
        return statistics.median(self.syncs)

    @property
    def sync_slow(self) -> float:
        """Seconds that one in twenty exceeds."""
        return statistics.quantiles(self.syncs, n=20)[-1]


def listen(folder: Path) -> Noise:
    """Measure now; ``folder`` is on the disk that counts. Takes less than a second."""
    return Noise(tuple(_loop() for _ in range(_LOOPS)), _synced(folder))


def _loop() -> float:
    started = time.perf_counter()
    for _ in range(60):
        hashlib.sha256(json.dumps(json.loads(_DOCUMENT)).encode()).digest()
    return time.perf_counter() - started


def _synced(folder: Path) -> tuple[float, ...]:
    """Write blocks behind one another, as a database writes its log, into a file that has its size already."""
    found = []
    with tempfile.TemporaryFile(dir=folder) as file:
        number = file.fileno()
        os.write(number, _BLOCK * _SYNCS)
        os.fsync(number)
        os.lseek(number, 0, os.SEEK_SET)
        for _ in range(_SYNCS):
            started = time.perf_counter()
            os.write(number, _BLOCK)
            _data_sync(number)
            found.append(time.perf_counter() - started)
    return tuple(found)


_data_sync = getattr(os, "fdatasync", os.fsync)
