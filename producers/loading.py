"""Reads both sides, in parallel or one after the other (C57)."""

from __future__ import annotations

import asyncio

from ledger.destination import DestinationReader
from ledger.errors import ApplyLedgerError
from producers.destination_side import DestinationSide, load_destination
from producers.errors import PlanRefusedError
from producers.mapping import MappingPlan
from producers.progress import Reporter
from producers.snapshots import SnapshotSet
from producers.source_side import SourceSide, load_source
from producers.sources import Source


async def load_sides(
    source: Source,
    reader: DestinationReader,
    mapping: MappingPlan,
    snapshots: SnapshotSet,
    reporter: Reporter,
    *,
    concurrent: bool,
) -> tuple[SourceSide, DestinationSide]:
    """Read the source in a thread and the destination in the event loop, both completely.

    Raises:
        IncompleteExtractionError: a side could not be read completely.
        ApplyLedgerError: whatever a side refuses.
        PlanRefusedError: both sides were refused; both refusals are reported (G11).
    """
    reading = reporter.in_thread(load_source, source, mapping, snapshots, reporter.phase("reading source"))
    observing = load_destination(
        reader, mapping, _constant_kinds(mapping), snapshots, reporter.phase("reading destination")
    )
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
