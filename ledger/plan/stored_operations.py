"""Operations and lines of a checked plan as sequences that are read on demand.

A plan of a million operations is a file and sixteen bytes for each operation: where its line begins, and the number in
its identifier. Everything else is made from the line when somebody looks, and gone when nobody does any more. The lines
were checked before; nothing is judged here.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, overload

from ledger.plan.canonical import object_key
from ledger.plan.model import PlannedOperation, RelationshipReference
from ledger.plan.operation_check import kind_and_identity
from ledger.plan.private_copy import PrivateCopy

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class LineIndex:
    """Where each line begins, and the number in the identifier of its operation."""

    starts: array[int]
    numbers: array[int]


class _FromLines(Sequence[_Item], Generic[_Item]):
    """A sequence with one item for each line of a copy. It equals every sequence of equal items."""

    def __init__(self, copy: PrivateCopy, index: LineIndex) -> None:
        self._copy = copy
        self._index = index

    def _made(self, line: bytes) -> _Item:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._index.starts)

    def __iter__(self) -> Iterator[_Item]:
        with self._copy.open_at() as reader:
            yield from map(self._made, reader)

    @overload
    def __getitem__(self, place: int) -> _Item: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[_Item]: ...

    def __getitem__(self, place: int | slice) -> _Item | Sequence[_Item]:
        places = range(len(self))[place]
        if isinstance(places, int):
            return self._made(self._line(places))
        if places.step == 1:
            return [self._made(line) for line in self._run(places)]
        return [self._made(self._line(one)) for one in places]

    def _line(self, place: int) -> bytes:
        starts = self._index.starts
        stop = starts[place + 1] if place + 1 < len(starts) else len(self._copy)
        return self._copy.read(starts[place], stop - starts[place])

    def _run(self, places: range) -> Iterator[bytes]:
        """Lines that stand one after the other, read at once; a caller who cares for memory asks for few."""
        if not places:
            return
        with self._copy.open_at(self._index.starts[places.start]) as reader:
            for _ in places:
                yield reader.readline()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str | bytes) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == another for one, another in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # like a list: equality is by content

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} lines>"


class StoredLines(_FromLines[bytes]):
    """The exact bytes of each operation with its newline, in stored order."""

    def _made(self, line: bytes) -> bytes:
        return line


class StoredOperations(_FromLines[PlannedOperation]):
    """Operations in stored order. A new item is made each time."""

    def _made(self, line: bytes) -> PlannedOperation:
        return _operation(line)

    def identifiers(self) -> Iterator[str]:
        """The identifiers in stored order, without reading a line."""
        return (f"op_{number:016x}" for number in self._index.numbers)

    def object_keys(self) -> Sequence[bytes]:
        """For each operation the 32 bytes by which the ledger's tables find its object."""
        return _ObjectKeys(self._copy, self._index)


class _ObjectKeys(_FromLines[bytes]):
    def _made(self, line: bytes) -> bytes:
        return hashlib.sha256(b"[" + kind_and_identity(line, json.loads(line)) + b"]").digest()


def _operation(line: bytes) -> PlannedOperation:
    """The operation of a checked line; ``model_construct`` leaves out what the check has done."""
    record: dict[str, Any] = json.loads(line)
    references = record.get("relationships")
    if references is not None:
        record["relationships"] = [RelationshipReference.model_construct(**reference) for reference in references]
    return PlannedOperation.model_construct(**record)


def identifiers_of(operations: Sequence[PlannedOperation]) -> Iterator[str]:
    """The identifiers of operations in their order; of a stored plan without making its operations."""
    if isinstance(operations, StoredOperations):
        return operations.identifiers()
    return (operation.operation_id for operation in operations)


def object_keys_of(operations: Sequence[PlannedOperation]) -> Sequence[bytes]:
    """For each operation the 32 bytes by which its object is found; of a stored plan made as they are asked for."""
    if isinstance(operations, StoredOperations):
        return operations.object_keys()
    return [object_key(operation.kind, operation.identity) for operation in operations]
