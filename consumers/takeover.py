"""Handles the operation that the previous writer left in flight (design 7.3).

A dead process says nothing about the destination. So the operation is recorded as unknown, from the mark alone, and
the run as interrupted; whether it goes on is decided afterwards, by the commit's ``on_crash``. Both events stand in
one append with the clearing of the mark: a second death here leaves either all of it or nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from consumers.errors import UnusableOrderError
from consumers.history import read_history
from consumers.lease import LeaseKeeper
from consumers.orders import policy_of
from consumers.outcomes import died_verdict
from consumers.ports import LedgerPort
from consumers.recorder import RunRecorder
from ledger.commit import PlanCommit
from ledger.plan.decode import decode_json
from ledger.store.errors import AlarmError
from ledger.store.records import InFlight, Order, OrderState


class UnknownMarkError(AlarmError):
    """The in-flight mark names an operation that the ledger does not contain."""


async def record_interrupted_operation(ledger: LedgerPort, keeper: LeaseKeeper, mark: InFlight) -> None:
    """Append ``operation.unknown`` and ``run.interrupted`` for the mark, and clear it.

    With ``on_crash: resume`` the order that the dead writer was carrying out stays open, and whoever looks for orders
    next carries it on; with ``stop`` it is closed in the same transaction.

    The destination stays quiet: the claim that found the mark has set the time before which nobody dispatches.

    Raises:
        UnknownMarkError: the run, its plan or the operation is not in the ledger; a person has to look.
        StoreError: the append failed.
    """
    binding_id = keeper.lease.binding_id
    commit = await ledger.run_commit(binding_id, mark.run_id)
    if commit is None:
        raise _unknown_mark(mark, "no commit of that run")
    operation_id = await _operation_at(ledger.stored_plan(commit.plan_checksum), mark)
    history = await read_history(mark.run_id, ledger.events(binding_id, run_id=mark.run_id))
    recorder = RunRecorder(keeper, history, operations_count=commit.operations_count)
    verdict = died_verdict()
    recorder.pending.append(
        recorder.operation_event(
            verdict.kind, verdict.body, operation_id=operation_id, ordinal=mark.ordinal, attempt=mark.attempt
        )
    )
    recorder.pending.append(recorder.ended_event("run.interrupted", failed_operation=operation_id))
    await recorder.commit(in_flight=None, close_orders=await _orders_to_close(ledger, binding_id, mark.run_id, commit))


async def _orders_to_close(
    ledger: LedgerPort, binding_id: int, run_id: str, commit: PlanCommit
) -> list[tuple[int, OrderState]]:
    carried_out = [o for o in await ledger.open_orders(binding_id) if o.run_id == run_id and o.kind != "stop"]
    return [(o.inbox_id, "done") for o in carried_out if _stops_on_crash(o, commit)]


def _stops_on_crash(order: Order, commit: PlanCommit) -> bool:
    try:
        return policy_of(order, commit).on_crash == "stop"
    except UnusableOrderError:
        # Written by another version of this program: it stays open, and is refused by name when its turn comes.
        return False


async def _operation_at(lines: AsyncIterator[bytes], mark: InFlight) -> str:
    ordinal = 0
    async for line in lines:
        if ordinal == mark.ordinal:
            return str(decode_json(line, what="a stored plan line")["operation_id"])
        ordinal += 1
    raise _unknown_mark(mark, f"a stored plan of {ordinal} operations")


def _unknown_mark(mark: InFlight, found: str) -> UnknownMarkError:
    return UnknownMarkError(
        checked=f"the operation in flight of run {mark.run_id}, ordinal {mark.ordinal}",
        expected="a committed run whose stored plan holds that operation",
        found=found,
        next_action="run apply-ledger verify; the ledger's tables contradict each other",
    )
