"""Audits of a ledger that somebody with all rights edited before."""

from __future__ import annotations

from ledger.audit import Level, Status, VerifyReport, verify_binding
from ledger.store.ledger import Ledger
from tests.support.recorded_runs import BINDING
from tests.support.store import connection_to
from tests.support.tampering import unguarded


async def audited(dsns: dict[str, str]) -> VerifyReport:
    """An audit with the reader's rights alone: an auditor needs no more."""
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        return await verify_binding(ledger, BINDING)


async def edit(dsns: dict[str, str], *statements: str) -> None:
    """Do it with all rights and cover the tracks: everything but the edit is as it was."""
    async with connection_to(dsns["admin"]) as admin, unguarded(admin):
        for statement in statements:
            done = await admin.execute(statement)
            assert not done.endswith(" 0"), f"nothing was edited: {statement}"


def failed(report: VerifyReport) -> set[Level]:
    """The levels with a finding."""
    return {level.level for level in report.levels if level.status is Status.FAILED}
