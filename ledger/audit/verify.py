"""``verify``: whether a binding's ledger is what was appended to it, and how far that can be told (G8).

The head is read first and the events after it, never the reverse: a newer head over older rows would look like loss.
"""

from __future__ import annotations

from ledger.audit.errors import UnknownBindingToVerifyError
from ledger.audit.events import EventPass, Progress
from ledger.audit.plans import RunAudit
from ledger.audit.report import Level, LevelReport, VerifyReport
from ledger.binding import DestinationBinding
from ledger.store.ledger import Ledger

_NO_CHECKPOINT = (
    "no head published outside this database was compared: whoever can rewrite the whole database can recompute every"
    " hash, or cut off the end together with the head, without a trace in here"
)


async def verify_binding(
    ledger: Ledger, binding: DestinationBinding, *, progress: Progress | None = None
) -> VerifyReport:
    """Audit one binding: all its events, and the plan and outcomes of each of its runs.

    Args:
        ledger: open, with any role that may read.
        binding: whose ledger; in any spelling.
        progress: called now and then with events done and events in all.

    Returns:
        What held, what did not and what could not be checked; it raises nothing for what it finds.
        :meth:`VerifyReport.require_intact` does.

    Raises:
        UnknownBindingToVerifyError: this ledger has no such binding.
        StoreError: the database cannot be read.
    """
    row = await ledger.binding(binding)
    if row is None:
        raise UnknownBindingToVerifyError(
            checked=f"the binding {binding}",
            expected="a binding of this ledger",
            found="none",
            next_action="list the bindings with 'apply-ledger runs'",
        )
    reports = {level: LevelReport(level) for level in Level}
    reports[Level.CHECKPOINTS].unchecked.append(_NO_CHECKPOINT)
    events = EventPass(row, reports)
    await events.run(ledger, progress)
    for trace in events.runs.values():
        audit = RunAudit(ledger, row.id, row.head_position, trace, reports[Level.PLANS], reports[Level.OUTCOMES])
        await audit.run()
    await _check_guards(ledger, reports[Level.GUARDS])
    return VerifyReport(
        url=row.url,
        branch=row.branch,
        head_position=row.head_position,
        head_hash=row.head_hash,
        events=events.verifier.events,
        levels=tuple(reports.values()),
    )


async def _check_guards(ledger: Ledger, report: LevelReport) -> None:
    """Only an administrator can switch a trigger off; left off, anybody's next mistake would go through unseen."""
    report.checked = 1
    for table in await ledger.unguarded_tables():
        report.add(
            "GuardOffError",
            checked=f"the triggers of ledger.{table}",
            expected="refuse_row_change and refuse_truncate, enabled always",
            found="missing, switched off, or not for every session",
        )
