"""Reads both sides, in parallel or one after the other (C57)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ledger.destination import DestinationReader, IncompleteExtractionError
from ledger.errors import ApplyLedgerError
from producers.destination_side import DestinationSide, load_destination
from producers.errors import PlanRefusedError
from producers.mapping import MappingPlan
from producers.progress import Reporter
from producers.snapshots import SnapshotSet
from producers.source_side import SourceSide, load_source
from producers.sources import Source

Explainer = Callable[[IncompleteExtractionError], Awaitable[IncompleteExtractionError]]
"""What knows more of why the destination could not be read completely, such as who wrote to it meanwhile."""


async def load_sides(
    source: Source,
    reader: DestinationReader,
    mapping: MappingPlan,
    snapshots: SnapshotSet,
    reporter: Reporter,
    *,
    concurrent: bool,
    explain: Explainer | None = None,
) -> tuple[SourceSide, DestinationSide]:
    """Read the source in a thread and the destination in the event loop, both completely.

    Args:
        source: the plug-in.
        reader: of the destination.
        mapping: the compiled mapping.
        snapshots: where what is read is written as it comes.
        reporter: of progress.
        concurrent: both at once.
        explain: makes a better refusal of one by which the destination could not be read completely.

    Raises:
        IncompleteExtractionError: a side could not be read completely.
        ApplyLedgerError: whatever a side refuses.
        PlanRefusedError: both sides were refused; both refusals are reported (G11).
    """
    reading = reporter.in_thread(load_source, source, mapping, snapshots, reporter.phase("reading source"))
    observing = _observe(reader, mapping, snapshots, reporter.phase("reading destination"), explain)
    if not concurrent:
        try:
            wanted = await reading
        except BaseException:  # whatever it was, a coroutine that nobody will await must be closed
            observing.close()
            raise
        return wanted, await observing
    first, second = await asyncio.gather(reading, observing, return_exceptions=True)
    if isinstance(first, BaseException) or isinstance(second, BaseException):
        raise _combined([error for error in (first, second) if isinstance(error, BaseException)])
    return first, second


async def _observe(
    reader: DestinationReader,
    mapping: MappingPlan,
    snapshots: SnapshotSet,
    progress: Callable[[int, int | None], None],
    explain: Explainer | None,
) -> DestinationSide:
    try:
        return await load_destination(reader, mapping, _constant_kinds(mapping), snapshots, progress)
    except IncompleteExtractionError as exc:
        if explain is None:
            raise
        raise await explain(exc) from exc


def _combined(errors: list[BaseException]) -> BaseException:
    """What to raise for one or two failures: a defect never hides behind a refusal."""
    defect = next((error for error in errors if not isinstance(error, ApplyLedgerError)), None)
    if defect is not None:
        return defect
    if len(errors) == 1:
        return errors[0]
    return PlanRefusedError(
        checked="whether both sides can be read completely",
        findings=[finding for error in errors if isinstance(error, ApplyLedgerError) for finding in error.findings],
        next_action="correct both and plan again",
    )


def _constant_kinds(mapping: MappingPlan) -> list[str]:
    """The kinds of constant peers; they are read even when no entry maps them."""
    return sorted(
        {
            kind
            for plan in mapping.kinds.values()
            for entry in plan.entries
            for field in entry.fields
            if field.is_constant_peer
            for kind in plan.candidates[field.name]
        }
    )
