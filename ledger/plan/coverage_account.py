"""Reads a coverage report strictly: order, one action for each resource, and agreement with the operations.

The account is what a reviewer sees. So it must say of each operation what the operation does: an update that is shown
as one value and written as another would be no review. The gate asks again before the first write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ledger.errors import Finding
from ledger.plan.canonical import canonical_json_bytes, same_bytes
from ledger.plan.coverage import CoverageLine, coverage_fault, decode_coverage_line
from ledger.plan.decode import MAX_LINE_BYTES, line_too_long
from ledger.plan.describe import name_text, object_text
from ledger.plan.errors import CoverageInvalidError, PlanArtifactError
from ledger.plan.layout import COVERAGE_FILE, REPLAN
from ledger.plan.lines import FaultList, line_body
from ledger.plan.model import PlannedOperation, RelationshipReference
from ledger.plan.private_copy import PrivateCopy
from ledger.plan.repeats import number_array, repeated

_CHUNK = 1024 * 1024


def read_coverage(coverage: bytes | PrivateCopy) -> tuple[CoverageLine, ...]:
    """The lines of ``plan/coverage.jsonl``, all of them in memory.

    Raises:
        CoverageInvalidError: lines that are not canonical, no coverage record or out of order, or a resource with two
            actions; all are counted, and the first ones are named.
    """
    account = _Account(coverage)
    lines = tuple(account.lines())
    if account.faults.total:
        raise CoverageInvalidError(
            checked=COVERAGE_FILE,
            expected="one well-formed, ordered account with one action for each resource",
            found=account.faults.summary(),
            next_action=REPLAN,
            faults=account.faults.findings,
        )
    return lines


def account_findings(coverage: PrivateCopy, operations: Iterable[PlannedOperation]) -> list[Finding]:
    """Everything that is wrong with an account, or in which it contradicts the operations; empty = it may be believed.

    Args:
        coverage: the raw file; only one line of it is held at a time.
        operations: the plan's, in stored order; read once.
    """
    account = _Account(coverage)
    agreement = _Agreement(operations, account.faults)
    for line in account.lines():
        # Out of order, nothing that is compared in order means anything; that the order is wrong was named.
        if account.in_order:
            agreement.take(line)
    if account.in_order:
        agreement.close()
    return account.faults.findings


def coverage_disagreements(
    lines: Sequence[CoverageLine], operations: Iterable[PlannedOperation]
) -> tuple[Finding, ...]:
    """Where an account that was read contradicts the operations: each has one line that says what it does."""
    faults = FaultList()
    agreement = _Agreement(sorted(operations, key=lambda found: (found.tier, found.operation_id)), faults)
    for line in sorted(lines, key=lambda line: line.order):
        agreement.take(line)
    agreement.close()
    return tuple(faults.findings)


class _Account:
    """One pass over an account, line by line."""

    def __init__(self, coverage: bytes | PrivateCopy) -> None:
        self._copy = coverage if isinstance(coverage, PrivateCopy) else PrivateCopy(coverage)
        self._resources = number_array()
        self.faults = FaultList()
        self.in_order = True

    def lines(self) -> Iterator[CoverageLine]:
        """Every line that is a coverage record; the faults of the others are counted."""
        last = (-1, "", -1)
        for number, raw in enumerate(_raw_lines(self._copy), start=1):
            where = f"{COVERAGE_FILE} line {number}"
            try:
                line = _decoded(raw, where)
            except PlanArtifactError as exc:
                self.faults.add(exc, number)
                if self.faults.is_enough:
                    return
                self._resources.append(number)
                continue
            order = line.order
            if order < last and self.in_order:
                self.faults.add(coverage_fault(where, "lines by (tier, operation_id)", "another order"), number)
                self.in_order = False
            last = order
            self._resources.append(_number_of(line))
            yield line
        self._name_repeated()

    def _name_repeated(self) -> None:
        """Each resource once (H5): lines whose numbers are equal are read again and compared."""
        twice = repeated(self._resources)
        seen: dict[bytes, CoverageLine] = {}
        for number, raw in enumerate(_raw_lines(self._copy) if twice else (), start=1):
            if self._resources[number - 1] not in twice or not self.faults.has_room:
                continue
            try:
                line = _decoded(raw, COVERAGE_FILE)
            except PlanArtifactError:
                continue  # named already
            other = seen.setdefault(line.resource, line)
            if other is not line:
                what = object_text(line.kind, line.identity)
                self.faults.add(coverage_fault(what, "exactly one action", f"{other.action} and {line.action}"), number)


def _raw_lines(copy: PrivateCopy) -> Iterator[bytes]:
    """Lines with their newlines; of a line that is too long, only so much that this can be seen."""
    with copy.open_at() as reader:
        while line := reader.readline(MAX_LINE_BYTES + 2):
            yield line
            if len(line) > MAX_LINE_BYTES + 1 and not line.endswith(b"\n"):
                while (rest := reader.readline(_CHUNK)) and not rest.endswith(b"\n"):
                    pass


def _decoded(raw: bytes, where: str) -> CoverageLine:
    if len(raw) > MAX_LINE_BYTES + 1:
        raise line_too_long(where, "more")
    return decode_coverage_line(line_body(raw, what=where), where)


def _number_of(line: CoverageLine) -> int:
    """A number that two lines of one resource have in common; others hardly ever, and that is looked into."""
    return int.from_bytes(hashlib.sha256(line.resource).digest()[:8])


class _Agreement:
    """Compares lines with operations, both in stored order: by tier and identifier."""

    def __init__(self, operations: Iterable[PlannedOperation], faults: FaultList) -> None:
        self._operations = iter(operations)
        self._faults = faults
        self._next = next(self._operations, None)
        self._matched = ""
        self._number = 0

    def take(self, line: CoverageLine) -> None:
        """Compare the next line; one without an operation says nothing here."""
        self._number += 1
        if line.operation_id is None:
            return
        while self._next is not None and (self._next.tier, self._next.operation_id) < (line.tier, line.operation_id):
            self._skip(self._next)
        if self._next is not None and (self._next.tier, self._next.operation_id) == (line.tier, line.operation_id):
            self._compare(line, self._next)
            self._matched = line.operation_id
            self._next = next(self._operations, None)
        elif line.operation_id == self._matched:
            self._fault(f"operation {line.operation_id}", "exactly one coverage line", "more than one")
        else:
            self._fault(f"coverage of operation {line.operation_id}", "an operation of that id and tier", "none")

    def close(self) -> None:
        """Name the operations that have no line."""
        while self._next is not None:
            self._skip(self._next)

    def _skip(self, operation: PlannedOperation) -> None:
        self._fault(f"operation {operation.operation_id}", "exactly one coverage line, in its tier", "none")
        self._next = next(self._operations, None)

    def _fault(self, checked: str, expected: str, found: str) -> None:
        self._faults.add(coverage_fault(checked, expected, found), self._number)

    def _compare(self, line: CoverageLine, operation: PlannedOperation) -> None:
        """A coverage line must agree with its operation; values are not shown, because they may be secret."""
        what = f"coverage of operation {operation.operation_id}"
        recorded = operation.destination_id
        if operation.action == "update" and recorded is not None and line.destination_id != recorded:
            self._fault(what, "the destination_id that the operation writes to", "another")
        if operation.action == "delete":
            return
        for name, difference in line.differences.items():
            if not _is_written(operation, name, difference.desired):
                expected = "as desired value what the operation writes"
                self._fault(f"field {name_text(name)} in the {what}", expected, "another")


def _is_written(operation: PlannedOperation, name: str, desired: Any) -> bool:
    payload = operation.payload or {}
    if name in payload:
        return same_bytes(payload[name], desired)
    reference = next((reference for reference in operation.relationships or () if reference.field == name), None)
    return reference is not None and _are_peers(reference, desired)


def _are_peers(reference: RelationshipReference, desired: Any) -> bool:
    """Peers of many are a set: the account may list them in another order."""
    pairs = [{"identity": peer, "peer_kind": reference.peer_kind} for peer in reference.peers]
    if reference.cardinality == "one":
        return same_bytes(pairs[0], desired)
    return isinstance(desired, list) and _spellings(desired) == _spellings(pairs)


def _spellings(pairs: list[Any]) -> set[bytes]:
    return {canonical_json_bytes(pair) for pair in pairs}
