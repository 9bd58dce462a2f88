"""Checks whether a newer plan of the same source has been applied since a plan was made (design 7.7).

The gate refuses such a plan and a review reports it beforehand; both use this module, so that they agree.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Protocol

from consumers.errors import StalePlanError


class AppliedPlans(Protocol):
    """What the ledger knows of plans that were applied. Contracts: :class:`ledger.store.ledger.Ledger`."""

    async def newer_apply(  # noqa: D102 - see the class
        self, binding_id: int, *, source: str, run_id: str, after_position: int
    ) -> int | None: ...

    async def last_applied_manifest(self, binding_id: int, source: str) -> bytes | None: ...  # noqa: D102


async def stale_plan(
    ledger: AppliedPlans, binding_id: int, *, source: str, run_id: str, ledger_position: int | None, created_at: str
) -> StalePlanError | None:
    """What the gate says of a stale plan, or None where it is the newest.

    Args:
        ledger: the ledger of the destination.
        binding_id: the destination's binding.
        source: the source that made the plan.
        run_id: the plan's own run, whose writes do not make it stale.
        ledger_position: where the ledger stood when the destination was read; None where no ledger was reachable.
        created_at: when the plan was made, ISO 8601; decides where there is no position.
    """
    if ledger_position is None:
        return await _by_time(ledger, binding_id, source, run_id, created_at)
    newer = await ledger.newer_apply(binding_id, source=source, run_id=run_id, after_position=ledger_position)
    if newer is None:
        return None
    return _stale(
        source,
        expected=f"no operation of this source applied by another run after ledger position {ledger_position}",
        found=f"one at position {newer}",
    )


async def _by_time(
    ledger: AppliedPlans, binding_id: int, source: str, run_id: str, created_at: str
) -> StalePlanError | None:
    """No ledger was reachable when the plan was made: the manifests' times decide, and the finding says so."""
    stored = await ledger.last_applied_manifest(binding_id, source)
    if stored is None:
        return None
    last = json.loads(stored)
    if last["run_id"] == run_id or datetime.fromisoformat(last["created_at"]) <= datetime.fromisoformat(created_at):
        return None
    return _stale(
        source,
        expected="no later plan of this source applied (this plan has no ledger position, so created_at decides)",
        found=f"run {last['run_id']} of {last['created_at']}; this plan is of {created_at}",
    )


def _stale(source: str, *, expected: str, found: str) -> StalePlanError:
    return StalePlanError(
        checked=f"whether the plan of source {source} is still the newest",
        expected=expected,
        found=found,
        next_action="make a fresh plan, or resume with --allow-stale to apply this one anyway",
    )
