"""All runs of an audit: each one when it is over, and what the log seals without a run whose plan it is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.audit.heads import Heads
from ledger.audit.plans import RunAudit
from ledger.audit.report import LevelReport
from ledger.audit.run_traces import RunTrace
from ledger.audit.source import AuditSource
from ledger.store.records import BindingRow


@dataclass(slots=True)
class RunAudits:
    """Audits runs as they come, in whatever order.

    Attributes:
        ledger: the source.
        row: the binding.
        heads: with the seals of the log.
        plans: the report of plans.
        outcomes: the report of outcomes.
    """

    ledger: AuditSource
    row: BindingRow
    heads: Heads
    plans: LevelReport
    outcomes: LevelReport
    _unexplained: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._unexplained = set(self.heads.seals)

    async def audit(self, trace: RunTrace) -> None:
        """Audit one run."""
        audit = RunAudit(
            self.ledger, self.row.id, self.row.head_position, trace, self.plans, self.outcomes, self.heads.seals
        )
        checksum = await audit.run()
        if checksum is not None:
            self._unexplained.discard(checksum)

    async def finish(self, *, resumed: bool) -> None:
        """A plan is sealed once a run was verified with it, so a seal without either is a plan that was taken out."""
        for checksum in sorted(self._unexplained):
            expected = "the plan, and a run that was verified with it"
            if await self.ledger.plan(checksum) is None:
                self._missing(checksum, expected, "no such plan")
            elif not resumed:
                self._missing(checksum, expected, "no such run")
        self.plans.ended()
        self.outcomes.ended()

    def _missing(self, checksum: str, expected: str, found: str) -> None:
        self.plans.add(
            "SealedPlanMissing", checked=f"the plan {checksum}, which the log seals", expected=expected, found=found
        )
