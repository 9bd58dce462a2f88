"""``verify``: whether a binding's ledger is what was appended to it, and how far that can be told (G8).

The head is read first and the events after it, never the reverse: a newer head over older rows would look like loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger.audit.errors import UnknownBindingToVerifyError
from ledger.audit.events import EventPass, Progress
from ledger.audit.heads import TrustedCheckpoint, recorded_heads
from ledger.audit.orders import check_marks, check_orders
from ledger.audit.projections import closing_all, live_projections, report_projections
from ledger.audit.report import EXPORT_LEVELS, Level, LevelReport, VerifyReport
from ledger.audit.run_audits import RunAudits
from ledger.audit.signed_note import VerifyingKey
from ledger.audit.source import AuditSource
from ledger.binding import DestinationBinding
from ledger.chain import GENESIS
from ledger.errors import ApplyLedgerError
from ledger.store.records import BindingRow

_NO_CHECKPOINT = (
    "no head published outside this database was compared: whoever can rewrite the whole database can recompute every"
    " hash, or cut off the end together with the head, without a trace in here"
)


async def verify_binding(
    ledger: AuditSource,
    binding: DestinationBinding,
    *,
    progress: Progress | None = None,
    checkpoints: Sequence[TrustedCheckpoint] = (),
    resume_from: TrustedCheckpoint | None = None,
    keys: Sequence[VerifyingKey] = (),
) -> VerifyReport:
    """Audit one binding: all its events, and the plan and outcomes of each of its runs.

    Args:
        ledger: open, with any role that may read; or an export.
        binding: whose ledger; in any spelling.
        progress: called now and then with events done and events in all.
        checkpoints: signed heads that were kept elsewhere; today's ledger must extend each of this binding's.
        resume_from: one of them; events up to it are not read again.
        keys: public keys that are known; by them the report says whose the signed heads are that the log records.

    Returns:
        What held, what did not and what could not be checked; it raises nothing for what it finds.
        :meth:`VerifyReport.require_intact` does.

    Raises:
        UnknownBindingToVerifyError: this ledger has no such binding.
        StoreError: the database cannot be read.
    """
    row = await ledger.binding(binding)
    if resume_from is not None and resume_from.position == 0:
        # Nothing is taken for the truth by it: it is compared, as any other one.
        checkpoints, resume_from = [*checkpoints, resume_from], None
    folded = [] if row is None or resume_from is not None else await live_projections(ledger, row)
    # Read anew behind the projections: they have taken no event that this head does not cover.
    row = await ledger.binding(binding)
    if row is None:
        raise UnknownBindingToVerifyError(
            checked=f"the binding {binding}",
            expected="a binding of this ledger",
            found="none",
            next_action="list the bindings with 'apply-ledger runs'",
        )
    reports = {level: LevelReport(level) for level in Level if level not in EXPORT_LEVELS}
    kept = [checkpoint for checkpoint in checkpoints if checkpoint.is_of(row.url, row.branch)]
    if not kept and resume_from is None:
        reports[Level.CHECKPOINTS].unchecked.append(_NO_CHECKPOINT)
    if resume_from is not None:
        _tell_skipped(resume_from, reports)
    with closing_all(folded):
        heads = await recorded_heads(ledger, row, kept, resume_from, reports[Level.CHECKPOINTS], keys)
        runs = RunAudits(ledger, row, heads, reports[Level.PLANS], reports[Level.OUTCOMES])
        after, trusted = (0, GENESIS) if resume_from is None else (resume_from.position, resume_from.head_hash)
        events = EventPass(row, reports, heads, after, trusted, folded, runs.audit)
        await events.run(ledger, progress)
        heads.finish()
        report_projections(folded, reports[Level.PROJECTIONS], resumed=resume_from is not None)
    await runs.finish(resumed=resume_from is not None)
    await check_orders(ledger.audited_orders(row.id), reports[Level.ORDERS])
    check_marks(await ledger.unordered_marks(row.id), reports[Level.ORDERS])
    await _check_guards(ledger, reports[Level.GUARDS])
    return VerifyReport(
        url=row.url,
        branch=row.branch,
        head_position=row.head_position,
        head_hash=row.head_hash,
        events=events.verifier.events,
        levels=tuple(reports.values()),
        covered_to=heads.covered_to,
    )


def in_one_spelling(row: BindingRow) -> bool:
    """Whether a binding stands in the table as every program registers it."""
    try:
        return row.binding.normalised() == row.binding
    except ApplyLedgerError:
        return False


def _tell_skipped(start: TrustedCheckpoint, reports: Mapping[Level, LevelReport]) -> None:
    """What a pass that begins behind the first event does not look at, on each level that looks at it otherwise."""
    trusted = f"{start.name} was taken for the truth about them"
    for level in (Level.POSITIONS, Level.CHAIN, Level.CATALOGUE, Level.CHECKPOINTS):
        reports[level].skip(f"events 1 to {start.position:,} were not read again: {trusted}")
    for level in (Level.PLANS, Level.OUTCOMES):
        reports[level].skip(f"runs without an event behind {start.position:,} were not looked at")


async def _check_bindings(ledger: AuditSource, strangers: Sequence[tuple[str, int]], report: LevelReport) -> None:
    """Each destination has one log: a second one in another spelling is shown to readers, and verified by nobody."""
    for row in await ledger.bindings():
        if not in_one_spelling(row):
            report.add(
                "BindingSpelledOtherwise",
                checked=f"the binding {row.id}",
                expected="an address in the only spelling in which this program registers it",
                found=str(row.binding),
            )
    for table, binding_id in strangers:
        report.add(
            "RowsOfNoBinding",
            checked=f"the bindings of the rows of ledger.{table}",
            expected="registered ones",
            found=f"the id {binding_id}, which is none's",
        )


async def _check_guards(ledger: AuditSource, report: LevelReport) -> None:
    """Only an administrator can take a trigger or a key away; without it anybody's next mistake would go through."""
    unguarded, changed = await ledger.unguarded_tables(), await ledger.changed_functions()
    missing, strangers = await ledger.missing_keys(), await ledger.rows_of_no_binding()
    if unguarded is None or changed is None or missing is None or strangers is None:
        report.unchecked.append("the triggers, functions and keys of the database that this was exported from")
        return
    report.checked = 1
    report.ended()
    for table in unguarded:
        report.add(
            "GuardOffError",
            checked=f"what guards ledger.{table}",
            expected="the triggers and foreign keys of the migrations, in force in every session, and nothing else",
            found="one that is missing or off, or a trigger, a rule or a policy for rows of somebody else's",
        )
    await _check_bindings(ledger, strangers, report)
    for function in changed:
        report.add(
            "FunctionChangedError",
            checked=f"the function ledger.{function}",
            expected="what the migrations of this program made it",
            found="another one, two of them, or none",
        )
    for table, columns in missing:
        report.add(
            "KeyMissingError",
            checked=f"the keys of ledger.{table}",
            expected=f"a valid unique index over {columns}",
            found="none",
        )
