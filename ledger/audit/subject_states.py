"""Documents that are being folded, one for each run: the last ones at hand, all others in a file without a name."""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterator
from typing import IO

from ledger.plan.private_copy import copy_folder
from ledger.projections.fold import Key, State

_AT_HAND = 1_000
"""More than runs that are under way at once."""
_KINDS, _LENGTH = 8, 32
_MOST_KINDS, _MOST_BYTES = (1 << _KINDS) - 1, (1 << _LENGTH) - 1


class SubjectStates:
    """By subject, the documents of one projection that have no item; little of it is in memory.

    The file is gone with :meth:`close`, or with the process.
    """

    def __init__(self) -> None:
        self._at_hand: OrderedDict[Key, State] = OrderedDict()
        self._kinds: list[type[State]] = []
        self._written: dict[str, int] = {}
        """By subject: where a document begins, its kind and its length, in one number: there may be very many."""
        self._file: IO[bytes] | None = None

    def get(self, key: Key) -> State | None:
        """The document of a key; None where there is none yet."""
        state = self._at_hand.get(key)
        if state is None and (place := self._written.pop(key.subject, None)) is not None:
            kind = self._kinds[place >> _LENGTH & _MOST_KINDS]
            state = kind.model_validate_json(self._read(place))
            self.put(key, state)
        return state

    def put(self, key: Key, state: State) -> None:
        """Keep the document of a key instead of the one before."""
        self._at_hand[key] = state
        self._at_hand.move_to_end(key)
        if len(self._at_hand) > _AT_HAND:
            self._write(*self._at_hand.popitem(last=False))

    def items(self) -> Iterator[tuple[Key, bytes]]:
        """Every key with the canonical bytes of its document."""
        for key, state in self._at_hand.items():
            yield key, state.canonical_bytes()
        for subject, place in self._written.items():
            yield Key(subject, ""), self._read(place)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, key: Key, state: State) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=copy_folder())  # noqa: SIM115 - closed in close()
        if type(state) not in self._kinds:
            self._kinds.append(type(state))
        data = state.canonical_bytes()
        first = self._file.seek(0, os.SEEK_END)
        self._file.write(data)
        self._written[key.subject] = (first << _KINDS | self._kinds.index(type(state))) << _LENGTH | len(data)

    def _read(self, place: int) -> bytes:
        if self._file is None:
            return b""
        self._file.seek(place >> _KINDS + _LENGTH)
        return self._file.read(place & _MOST_BYTES)
