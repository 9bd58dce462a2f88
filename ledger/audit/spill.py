"""Records put in the order of their objects, in bounded memory: what does not fit waits in temporary files.

A record goes to one of 256 parts by the first byte of its object key. A part is small even of a log of many millions
of events, is read whole, and is sorted in memory; part after part gives all objects in the order of their keys.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import IO, Self

_PARTS = 256
_IN_MEMORY = 32 * 1024 * 1024
"""Bytes that are kept before anything is written to a file."""
_HEAD = struct.Struct(">32sqI")


class ObjectSpill:
    """Put records in, in any order of objects; take them out object by object, each object's in the order they came."""

    def __init__(self) -> None:
        self._parts = [bytearray() for _ in range(_PARTS)]
        self._files: list[IO[bytes]] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._held = 0

    def put(self, object_key: bytes, position: int, record: bytes) -> None:
        """Keep one record."""
        self.put_all((object_key,), (position,), (record,))

    def put_all(self, keys: Sequence[bytes], positions: Sequence[int], records: Sequence[bytes]) -> None:
        """Keep some records, column by column."""
        parts, pack = self._parts, _HEAD.pack
        for key, position, record in zip(keys, positions, records, strict=True):
            parts[key[0]] += pack(key, position, len(record)) + record
        self._held += sum(map(len, records)) + _HEAD.size * len(records)
        if self._held > _IN_MEMORY:
            self._write_out()

    def objects(self) -> Iterator[tuple[bytes, list[tuple[int, bytes]]]]:
        """Each object's key and its records with their positions."""
        for number in range(_PARTS):
            grouped: dict[bytes, list[tuple[int, bytes]]] = {}
            data = self._whole(number)
            offset, whole, unpack, size = 0, len(data), _HEAD.unpack_from, _HEAD.size
            while offset < whole:
                key, position, length = unpack(data, offset)
                start = offset + size
                offset = start + length
                record = (position, data[start:offset])
                if key in grouped:
                    grouped[key].append(record)
                else:
                    grouped[key] = [record]
            yield from sorted(grouped.items())

    def close(self) -> None:
        """Remove the files."""
        for file in self._files or ():
            file.close()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_out(self) -> None:
        if self._files is None:
            self._folder = tempfile.TemporaryDirectory(prefix="apply-ledger-")
            # Unbuffered: what is written at once is large, and 256 buffers would be memory for nothing.
            self._files = [open(f"{self._folder.name}/{number:03}", "w+b", buffering=0) for number in range(_PARTS)]  # noqa: SIM115 - closed in close()
        for part, file in zip(self._parts, self._files, strict=True):
            view = memoryview(part)
            while view:
                view = view[file.write(view) :]
            view.release()
            part.clear()
        self._held = 0

    def _whole(self, number: int) -> bytes:
        part = bytes(self._parts[number])
        if self._files is None:
            return part
        self._files[number].seek(0)
        data = bytearray()
        while chunk := self._files[number].read(1 << 20):
            data += chunk
        return bytes(data) + part
