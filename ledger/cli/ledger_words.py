"""Facts from the ledger for a review: who wrote objects last, what others wrote since, whether the plan is stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.cli.output import people
from ledger.cli.session import embedded, ledger_exists, occupied, open_ledger

if TYPE_CHECKING:
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.errors import ApplyLedgerError, Finding
    from ledger.plan import SavedPlan
    from ledger.plan.review import LedgerWords
    from ledger.store.ledger import Ledger


async def what_the_ledger_says(settings: Settings, saved: SavedPlan) -> LedgerWords:
    """What the ledger knows beside a plan; nothing without a ledger."""
    from ledger.plan.review import LedgerWords
    from ledger.store.errors import LedgerUnavailableError

    binding: DestinationBinding | None = saved.manifest.destination_binding
    if binding is None or not ledger_exists(settings):
        _warn_of_a_closed_folder(settings)
        return LedgerWords()
    try:
        return await _words_of_the_ledger(settings, saved, binding)
    except LedgerUnavailableError as exc:
        warn_of_no_ledger("who else wrote these objects, and whether this plan is stale, is not known", exc)
        return LedgerWords()


def _warn_of_a_closed_folder(settings: Settings) -> None:
    """No ledger at all is how everybody begins; one that cannot be looked at must not pass for that."""
    folder = None if settings.dsn is not None else embedded(settings).status().folder
    if folder is not None and occupied(folder):
        what = "has no ledger, or none that this user may read: writes of other sources are not known"
        people.print(f"warning: {folder} {what}", style="yellow")


async def _words_of_the_ledger(settings: Settings, saved: SavedPlan, binding: DestinationBinding) -> LedgerWords:
    from consumers.overlaps import find_overlaps
    from ledger.plan.review import LastWriter, LedgerWords

    async with open_ledger(settings) as ledger:
        row = await ledger.binding(settings.recorded_as(binding))
        if row is None:
            return LedgerWords(last_writers={})
        writers = await ledger.last_writers(row.id, None)
        position = _position_of(saved)
        source = saved.manifest.source
        found = (
            await find_overlaps(ledger, row.id, source=source, after_position=position, operations=saved.operations)
            if position is not None and source is not None
            else []
        )
        return LedgerWords(
            last_writers={
                key: LastWriter(write.source, write.run_id, write.position) for key, write in writers.items()
            },
            overlaps=[item.overlap for item in found],
            stale=await _stale_findings(ledger, row.id, saved, position),
            committed=await ledger.run_commit(row.id, saved.manifest.run_id) is not None,
        )


def _position_of(saved: SavedPlan) -> int | None:
    """Where the ledger stood; a plan made elsewhere has no run.json of ours: then nothing is claimed about overlaps."""
    from producers.errors import RunDirectoryError
    from producers.run_directory import read_run_record

    try:
        return read_run_record(saved.run_dir).ledger_position
    except RunDirectoryError:
        return None


async def _stale_findings(ledger: Ledger, binding_id: int, saved: SavedPlan, position: int | None) -> list[Finding]:
    """What the gate would say of a stale plan; a run that was applied to its end is no plan to apply any more."""
    from consumers.staleness import stale_plan

    manifest = saved.manifest
    if manifest.source is None:
        return []
    stale = await stale_plan(
        ledger,
        binding_id,
        source=manifest.source,
        run_id=manifest.run_id,
        ledger_position=position,
        created_at=manifest.created_at,
    )
    if stale is None or (await ledger.run_state(binding_id, manifest.run_id)).terminal == "run.applied":
        return []
    return list(stale.findings)


def warn_of_no_ledger(what: str, exc: ApplyLedgerError) -> None:
    """Say what is not known because the ledger cannot be reached."""
    people.print(f"warning: the ledger cannot be reached, {what} ({exc.found})", style="yellow")
