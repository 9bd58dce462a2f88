"""Records put in the order of their objects, in bounded memory: what does not fit waits in temporary files.

A record goes to one of 256 parts by the first byte of its object key. Part after part gives all objects in the order of
their keys; a part is small even of a log of many millions of events, and where one object has most of them, its records
stay in the file until they are asked for.
"""

from __future__ import annotations

import os
import struct
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Self

from ledger.plan.private_copy import copy_folder

_PARTS = 256
_IN_MEMORY = 32 * 1024 * 1024
"""Bytes that are kept before anything is written to a file."""
_HEAD = struct.Struct(">32sqI")


class ObjectSpill:
    """Put records in, in any order of objects; take them out object by object, each object's in the order they came."""

    def __init__(self) -> None:
        self._parts = [bytearray() for _ in range(_PARTS)]
        self._files: list[IO[bytes]] | None = None
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

    def objects(self) -> Iterator[tuple[bytes, Iterable[tuple[int, bytes]]]]:
        """Each object's key and its records with their positions; of a large part they are read as they are wanted."""
        for number in range(_PARTS):
            if self._size(number) <= _IN_MEMORY:
                yield from sorted(_grouped(self._whole(number)).items())
            else:
                yield from sorted(self._left_in_file(number).items(), key=_key_of)

    def _left_in_file(self, number: int) -> dict[bytes, RecordsInFile]:
        """Where the records of each object stand; eight bytes each, however many one object has."""
        self._write_out()
        file, size = self._file(number), self._size(number)
        grouped: dict[bytes, RecordsInFile] = {}
        offset = 0
        while offset < size:
            key, _, length = _HEAD.unpack(os.pread(file, _HEAD.size, offset))
            if key not in grouped:
                grouped[key] = RecordsInFile(file)
            grouped[key].offsets.append(offset)
            offset += _HEAD.size + length
        return grouped

    def _size(self, number: int) -> int:
        written = 0 if self._files is None else os.fstat(self._file(number)).st_size
        return written + len(self._parts[number])

    def _file(self, number: int) -> int:
        return self._files[number].fileno() if self._files else -1

    def _whole(self, number: int) -> bytes:
        written = b"" if self._files is None else os.pread(self._file(number), self._size(number), 0)
        return written + bytes(self._parts[number])

    def close(self) -> None:
        """Remove the files."""
        for file in self._files or ():
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_out(self) -> None:
        if self._files is None:
            # Without names: whatever ends this process, nothing of them is left. Unbuffered: what is written at once is
            # large, and 256 buffers would be memory for nothing.
            folder = copy_folder()
            self._files = []
            for _ in range(_PARTS):
                self._files.append(tempfile.TemporaryFile(buffering=0, dir=folder))  # noqa: SIM115 - closed in close()
        for part, file in zip(self._parts, self._files, strict=True):
            view = memoryview(part)
            while view:
                view = view[file.write(view) :]
            view.release()
            part.clear()
        self._held = 0


def _grouped(data: bytes) -> dict[bytes, list[tuple[int, bytes]]]:
    grouped: dict[bytes, list[tuple[int, bytes]]] = {}
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
    return grouped


@dataclass(slots=True)
class RecordsInFile:
    """The records of one object, in the order in which they came, as often as they are asked for."""

    file: int
    offsets: array[int] = field(default_factory=lambda: array("Q"))

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Each with its position."""
        for offset in self.offsets:
            _, position, length = _HEAD.unpack(os.pread(self.file, _HEAD.size, offset))
            yield position, os.pread(self.file, length, offset + _HEAD.size)


def _key_of(item: tuple[bytes, RecordsInFile]) -> bytes:
    return item[0]
