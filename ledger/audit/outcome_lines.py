"""Outcomes beside the plan lines that they are outcomes of, in order, some thousand at a time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass

from ledger.audit.bodies import parsed
from ledger.audit.errors import PlanOfRunMissingError
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow, OutcomeRow

Progress = Callable[[int, int], None]

_NODE_ID = re.compile(r'^\{"duration_ms":[0-9]+,"node_id":"([ !#-\[\]-~]*)",')
"""As nearly all bodies begin; another one is read as JSON, which takes four times as long."""

FOLDED_KINDS = frozenset({"operation.applied", "operation.unknown", "operation.skipped"})
"""What says something about an object; an operation that failed is proven to have written nothing."""


@dataclass(frozen=True, slots=True)
class OutcomeWithLine:
    """An outcome of an operation; ``node_id`` is empty unless it was applied."""

    position: int
    kind: str
    run_id: str | None
    node_id: str


async def outcomes_with_lines(
    ledger: Ledger, row: BindingRow, *, until: int
) -> AsyncIterator[tuple[OutcomeWithLine, bytes]]:
    """Every applied, unknown and skipped operation up to a position, in order, with the plan's line.

    Raises:
        PlanOfRunMissingError: a run has outcomes and no stored plan.
        StoreError: the database cannot be read.
    """
    async for outcome, _, line in outcome_lines(ledger, row, until, None):
        yield OutcomeWithLine(outcome.position, outcome.kind, outcome.run_id, node_id_of(outcome)), line


async def outcome_lines(
    ledger: Ledger, row: BindingRow, until: int, progress: Progress | None
) -> AsyncIterator[tuple[OutcomeRow, bytes, bytes]]:
    """Each outcome of :data:`FOLDED_KINDS` with the key of its object and its line.

    A page of outcomes of one run is a range of its plan, and is read at once.

    Raises:
        PlanOfRunMissingError: a run has outcomes and no stored plan.
        StoreError: the database cannot be read.
    """
    checksums: dict[str, str] = {}
    async for page in ledger.outcome_pages(row.id, until=until):
        for outcomes in _by_run(page):
            run_id = outcomes[0].run_id or ""
            if run_id not in checksums:
                checksums[run_id] = await checksum_of_run(ledger, row, run_id)
            ordinals = [outcome.ordinal or 0 for outcome in outcomes]
            lines = await ledger.lines_between(checksums[run_id], min(ordinals), max(ordinals))
            for outcome, ordinal in zip(outcomes, ordinals, strict=True):
                if ordinal in lines:
                    object_key, line = lines[ordinal]
                    yield outcome, object_key, line
        if progress:
            progress(page[-1].position, until)


def _by_run(page: Sequence[OutcomeRow]) -> Iterator[list[OutcomeRow]]:
    """The outcomes that a state is folded from, in pieces that belong to one run and stand together."""
    piece: list[OutcomeRow] = []
    for outcome in page:
        if outcome.kind not in FOLDED_KINDS or outcome.ordinal is None:
            continue
        if piece and piece[0].run_id != outcome.run_id:
            yield piece
            piece = []
        piece.append(outcome)
    if piece:
        yield piece


async def checksum_of_run(ledger: Ledger, row: BindingRow, run_id: str) -> str:
    """The checksum of the plan that a run has outcomes of.

    Raises:
        PlanOfRunMissingError: it has none.
    """
    artifact = await ledger.stored_artifact(row.id, run_id)
    if artifact is None:
        raise PlanOfRunMissingError(
            checked=f"the stored plan of run {run_id}, which has outcomes",
            expected="the plan that was applied",
            found="none",
            next_action="run 'apply-ledger verify'",
        )
    return artifact.checksum


def node_id_of(outcome: OutcomeRow) -> str:
    """The id that the destination answered with; empty unless it was applied."""
    if outcome.kind != "operation.applied":
        return ""
    if found := _NODE_ID.search(outcome.body):
        return found[1]
    body = parsed(outcome.body.encode())
    return str(body.get("node_id") or "") if isinstance(body, dict) else ""
