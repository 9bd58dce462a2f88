"""Operation lines: each decoded strictly, checked once, and compared with the one before it (design 4.2).

Lines are taken in blocks. A block whose values, encoded together, give its own bytes again is canonical throughout: no
duplicate key, no other spelling of a number or text can survive that. A block in which anything is not certain is gone
through again line by line, on the way that names faults. Neither way keeps operations: what is kept of each is its
place and the number in its identifier, sixteen bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any, Final

from pydantic import ValidationError

from ledger.plan.canonical import MAX_INTEGER_DIGITS, MAX_VALUE_NESTING, canonical_identity, canonical_json_text
from ledger.plan.decode import MAX_LINE_BYTES, MAX_VALUES, decode_canonical_line, line_too_long
from ledger.plan.errors import (
    DuplicateOperationIdError,
    OperationOrderError,
    PlanArtifactError,
    PlanOperationInvalidError,
    TornPlanArtifactError,
    UnsupportedOperationActionError,
)
from ledger.plan.field_problems import field_problems
from ledger.plan.layout import OPERATIONS_FILE, REPLAN, shown
from ledger.plan.lines import FaultList, line_body
from ledger.plan.model import ACTIONS, DECODED, PlannedOperation
from ledger.plan.operation_check import certainly_valid
from ledger.plan.private_copy import PrivateCopy
from ledger.plan.repeats import number_array, repeated
from ledger.plan.stored_operations import LineIndex, StoredLines, StoredOperations

_BLOCK_LINES: Final = 32
"""What is decoded and encoded again together should still be in the processor's cache; 256 are a fifth slower."""
_BLOCK_BYTES: Final = 1024 * 1024
_decode = json.JSONDecoder().raw_decode


def parse_operations(
    operations_bytes: bytes | PrivateCopy, *, format_version: int
) -> tuple[Sequence[PlannedOperation], Sequence[bytes]]:
    """All operations in stored order, and their exact lines; both are read from the bytes again as they are asked for.

    Args:
        operations_bytes: the whole file.
        format_version: of the manifest.

    Raises:
        UnsupportedOperationActionError: an action outside the vocabulary; it takes precedence over other faults.
        TornPlanArtifactError: any other fault of a line; all are counted, and the first ones are named.
    """
    copy = operations_bytes if isinstance(operations_bytes, PrivateCopy) else PrivateCopy(operations_bytes)
    check = _Check(copy, format_version)
    check.run()
    check.require_no_faults()
    return StoredOperations(copy, check.index), StoredLines(copy, check.index)


def _blocks(copy: PrivateCopy) -> Iterator[list[bytes]]:
    """Lines with their newlines; of a line that is too long, only so much that this can be seen."""
    reader = copy.open_at()
    block: list[bytes] = []
    size = 0
    while line := reader.readline(MAX_LINE_BYTES + 2):
        block.append(line)
        size += len(line)
        if len(line) > MAX_LINE_BYTES + 1 and not line.endswith(b"\n"):
            while (rest := reader.readline(_BLOCK_BYTES)) and not rest.endswith(b"\n"):
                pass
        if len(block) >= _BLOCK_LINES or size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block


def _canonical_values(block: Sequence[bytes]) -> list[Any] | None:
    """The values of lines that certainly are canonical; None where a closer look is needed."""
    data = b"".join(block)
    if data[-1:] != b"\n" or b"\\u0000" in data or any(map(_needs_care, block)):
        return None
    try:
        texts = data.decode().split("\n")[:-1]
        decoded = [_decode(text) for text in texts]
        if [end for _, end in decoded] != [len(text) for text in texts]:
            return None
        values = [value for value, _ in decoded]
        # One JSON value ends where it ends, so equal concatenations have equal parts.
        return values if canonical_json_text(values) == f"[{','.join(texts)}]" else None
    except (ValueError, RecursionError):
        return None


def _needs_care(line: bytes) -> bool:
    """Depth, number, and integers that not every reader can convert survive encoding; rare, and cheap to suspect."""
    return (
        line.count(b"[") + line.count(b"{") > MAX_VALUE_NESTING
        or (
            len(line) > MAX_INTEGER_DIGITS
            and (
                len(line) > MAX_LINE_BYTES
                # A run of so many digits covers one of these places.
                or any(48 <= byte <= 57 for byte in line[MAX_INTEGER_DIGITS :: MAX_INTEGER_DIGITS + 1])
                or (len(line) > MAX_VALUES and line.count(b",") >= MAX_VALUES - MAX_VALUE_NESTING)
            )
        )
    )


class _Check:
    """One pass over all lines: fills the index, and collects the faults."""

    def __init__(self, copy: PrivateCopy, format_version: int) -> None:
        self._copy = copy
        self._version = format_version
        self._last = (-1, "")
        self._tiers = 0
        self._number = 0
        self._unsupported = False
        self._faults = FaultList()
        self._undecoded = False
        self._misplaced = number_array()
        self.index = LineIndex(number_array(), number_array())

    def run(self) -> None:
        """Check every line."""
        start = 0
        for block in _blocks(self._copy):
            if not self._take_block(block):
                self._take_lines(block)
            self.index.starts.extend(accumulate(map(len, block[:-1]), initial=start))
            start += sum(map(len, block))
            self._number += len(block)
            if self._faults.is_enough:
                return
        if self._tiers > 1 or self._misplaced:
            self._name_repeated()

    def require_no_faults(self) -> None:
        """Raise the verdict where there was a fault."""
        if not self._faults.total:
            return
        verdict = UnsupportedOperationActionError if self._unsupported else TornPlanArtifactError
        raise verdict(
            checked=f"the {self._copy.line_count} lines of {OPERATIONS_FILE}",
            expected="canonical, valid, ordered operations",
            found=self._faults.summary(),
            next_action=REPLAN,
            faults=self._faults.findings,
        )

    def _take_block(self, block: Sequence[bytes]) -> bool:
        """Whether the whole block certainly has no fault; only then anything was taken."""
        values = _canonical_values(block)
        if values is None:
            return False
        last, tiers = self._last, self._tiers
        for line, record in zip(block, values, strict=True):
            if not certainly_valid(line, record, self._version):
                return False
            key = (record["tier"], record["operation_id"])
            if key <= last:
                return False
            tiers += key[0] != last[0]
            last = key
        self._last, self._tiers = last, tiers
        self.index.numbers.extend([int(record["operation_id"][3:], 16) for record in values])
        return True

    def _take_lines(self, block: Sequence[bytes]) -> None:
        for number, line in enumerate(block, start=self._number + 1):
            try:
                operation = _parse_line(line, number, self._version)
            except PlanArtifactError as exc:
                self._unsupported = self._unsupported or isinstance(exc, UnsupportedOperationActionError)
                self._undecoded = True
                self._faults.add(exc, number)
                self.index.numbers.append(0)
            else:
                self._take(operation, number)

    def _take(self, operation: PlannedOperation, number: int) -> None:
        """Stored order is (tier, operation_id); it is checked, never made (A30, C14)."""
        key = (operation.tier, operation.operation_id)
        last, self._last = self._last, key
        self._tiers += key[0] != last[0]
        this = _number_in(operation.operation_id)
        if key <= last:
            self._misplaced.append(number)
            # To look through all numbers is affordable for the faults that are kept.
            if self._faults.has_room and this in self.index.numbers:
                self._faults.add(_twice(operation.operation_id, number), number)
            else:
                self._faults.add(_misplaced(key, last, number), number)
        self.index.numbers.append(this)

    def _name_repeated(self) -> None:
        """Each identifier once (A55, C15): in order within a tier, so it is another tier that repeats one."""
        twice = repeated(self.index.numbers)
        if self._undecoded:
            twice.discard(0)  # stands for lines that are faults already
        if not twice:
            return
        named = set(self._misplaced)
        seen: set[int] = set()
        for number, this in enumerate(self.index.numbers, start=1):
            if this not in twice:
                continue
            if this in seen and number not in named:
                self._faults.add(_twice(f"op_{this:016x}", number), number)
            seen.add(this)


def _number_in(operation_id: str) -> int:
    return int(operation_id[3:], 16)


def _what(number: int) -> str:
    return f"line {number} of {OPERATIONS_FILE}"


def _twice(operation_id: str, number: int) -> DuplicateOperationIdError:
    return DuplicateOperationIdError(
        checked=_what(number),
        expected="each operation once",
        found=f"{operation_id} a second time",
        next_action=REPLAN,
    )


def _misplaced(key: tuple[int, str], last: tuple[int, str], number: int) -> OperationOrderError:
    return OperationOrderError(
        checked=_what(number),
        expected="operations ordered by tier and identifier",
        found=f"tier {key[0]}, {key[1]} after tier {last[0]}, {last[1]}",
        next_action=REPLAN,
    )


def _parse_line(line: bytes, number: int, format_version: int) -> PlannedOperation:
    what = _what(number)
    if len(line) > MAX_LINE_BYTES + 1:
        raise line_too_long(what, "more")
    record = decode_canonical_line(line_body(line, what=what), what=what)
    try:
        operation = PlannedOperation.model_validate(record, context=DECODED)
    except ValidationError as exc:
        raise _invalid(record, exc, what) from None
    if line.count(b"[") + line.count(b"{") > MAX_VALUE_NESTING:
        _require_canonical_values(operation)
    if operation.action == "update" and (operation.destination_id is None) != (format_version < 3):
        found = "none" if operation.destination_id is None else "one, which only format 3 has"
        raise PlanOperationInvalidError(
            checked=f"the destination_id of the update in {what}",
            expected="the id recorded for it" if format_version >= 3 else "none",
            found=found,
            next_action=REPLAN,
        )
    return operation


def _require_canonical_values(operation: PlannedOperation) -> None:
    """A record may be nested more deeply than a value, which every later step encodes by itself.

    Raises:
        UnserializablePayloadValueError: names kind and field.
    """
    for values in (operation.identity, operation.payload or {}):
        canonical_identity(values, kind=operation.kind)
    for reference in operation.relationships or ():
        for peer in reference.peers:
            canonical_identity(peer, kind=reference.peer_kind)


def _invalid(record: object, exc: ValidationError, what: str) -> PlanArtifactError:
    action = record.get("action") if isinstance(record, dict) else None
    if isinstance(action, str) and action not in ACTIONS:
        return UnsupportedOperationActionError(
            checked=f"the action of {what}",
            expected=f"one of {', '.join(ACTIONS)}",
            found=shown(action),
            next_action="apply the plan with a version that knows this action, or make a fresh plan",
        )
    return PlanOperationInvalidError(
        checked=what,
        expected="a record that keeps the rules of the format",
        found=field_problems(exc),
        next_action=REPLAN,
    )
