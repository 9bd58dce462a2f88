"""Says which run of this ledger wrote to a destination while it was being read for a plan."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from ledger.cli.session import open_ledger
from ledger.destination import IncompleteExtractionError
from ledger.errors import ApplyLedgerError

if TYPE_CHECKING:
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.store.ledger import Ledger
    from ledger.store.records import BindingRow

_LOOKED_AT = 1_000
"""Outcomes among the last so many events: the newest writer is among them."""


async def with_the_writer(
    settings: Settings, binding: DestinationBinding, position: int | None, refusal: IncompleteExtractionError
) -> IncompleteExtractionError:
    """The refusal, with the run that wrote since ``position``; as it is where the ledger knows of none.

    Args:
        settings: of this installation.
        binding: the destination.
        position: where its log stood before anything was read; None where no ledger was reachable.
        refusal: by which the destination could not be read completely.
    """
    if position is None:
        return refusal
    try:
        async with open_ledger(settings) as ledger:
            row = await ledger.binding(binding)
            told = None if row is None else await _newest_writer(ledger, row, position)
    except ApplyLedgerError:  # the refusal itself is what matters, and it is whole without this
        return refusal
    if told is None:
        return refusal
    run_id, words = told
    return IncompleteExtractionError(
        checked=refusal.checked,
        expected=refusal.expected,
        found=f"{refusal.found}; {words}",
        next_action=f"plan again when run {run_id} has ended (`apply-ledger runs show {run_id}`); nothing was planned",
    )


async def _newest_writer(ledger: Ledger, row: BindingRow, position: int) -> tuple[str, str] | None:
    """The run and what is said of it: the one whose operation is in flight, else the last one that wrote since."""
    since = max(position, row.head_position - _LOOKED_AT)
    outcomes = await ledger.recent_outcomes(row.id, among=row.head_position - since)
    in_flight = row.in_flight.run_id if row.in_flight is not None and row.has_live_lease else None
    run_id = in_flight or (outcomes[0].run_id if outcomes else None)
    if run_id is None:
        return None
    commit = await ledger.run_commit(row.id, run_id)
    source = "" if commit is None else f" of source {commit.source}"
    started = await ledger.resumptions(row.id, run_id)
    if in_flight is None:
        last = outcomes[0].recorded_at.astimezone(UTC)
        return run_id, f"run {run_id}{source} wrote here meanwhile, last at {last:%Y-%m-%dT%H:%M:%SZ}"
    began = f", since {started[-1].recorded_at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if started else ""
    return run_id, f"run {run_id}{source} is being applied to this destination{began}"
