"""``verify``: whether a binding's ledger is what was appended to it, and how far that can be told (G8).

The head is read first and the events after it, never the reverse: a newer head over older rows would look like loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from ledger.audit.errors import UnknownBindingToVerifyError
from ledger.audit.events import EventPass, Progress
from ledger.audit.heads import TrustedCheckpoint, recorded_heads
from ledger.audit.plans import RunAudit
from ledger.audit.projections import live_projections, report_projections
from ledger.audit.report import EXPORT_LEVELS, Level, LevelReport, VerifyReport
from ledger.audit.source import AuditSource
from ledger.binding import DestinationBinding
from ledger.chain import GENESIS

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
) -> VerifyReport:
    """Audit one binding: all its events, and the plan and outcomes of each of its runs.

    Args:
        ledger: open, with any role that may read; or an export.
        binding: whose ledger; in any spelling.
        progress: called now and then with events done and events in all.
        checkpoints: signed heads that were kept elsewhere; today's ledger must extend each of this binding's.
        resume_from: one of them; events up to it are not read again.

    Returns:
        What held, what did not and what could not be checked; it raises nothing for what it finds.
        :meth:`VerifyReport.require_intact` does.

    Raises:
        UnknownBindingToVerifyError: this ledger has no such binding.
        StoreError: the database cannot be read.
    """
    row = await ledger.binding(binding)
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
    if not kept:
        reports[Level.CHECKPOINTS].unchecked.append(_NO_CHECKPOINT)
    heads = await recorded_heads(ledger, row, kept, resume_from, reports[Level.CHECKPOINTS])
    after, trusted = (0, GENESIS) if resume_from is None else (resume_from.position, resume_from.head_hash)
    events = EventPass(row, reports, heads, after, trusted, folded)
    await events.run(ledger, progress)
    heads.finish()
    report_projections(folded, reports[Level.PROJECTIONS], resumed=resume_from is not None)
    for trace in events.runs.values():
        plans, outcomes = reports[Level.PLANS], reports[Level.OUTCOMES]
        await RunAudit(ledger, row.id, row.head_position, trace, plans, outcomes, heads.seals).run()
    await _check_guards(ledger, reports[Level.GUARDS])
    return VerifyReport(
        url=row.url,
        branch=row.branch,
        head_position=row.head_position,
        head_hash=row.head_hash,
        events=events.verifier.events,
        levels=tuple(reports.values()),
    )


async def _check_guards(ledger: AuditSource, report: LevelReport) -> None:
    """Only an administrator can take a trigger or a key away; without it anybody's next mistake would go through."""
    unguarded, missing = await ledger.unguarded_tables(), await ledger.missing_keys()
    if unguarded is None or missing is None:
        report.unchecked.append("the triggers and keys of the database that this was exported from")
        return
    report.checked = 1
    for table in unguarded:
        report.add(
            "GuardOffError",
            checked=f"the triggers of ledger.{table}",
            expected="refuse_row_change and refuse_truncate, enabled always",
            found="missing, switched off, or not for every session",
        )
    for table, columns in missing:
        report.add(
            "KeyMissingError",
            checked=f"the keys of ledger.{table}",
            expected=f"a valid unique index over {columns}",
            found="none",
        )
