"""The inbox in an audit: whoever edits an order stops a run, or has one carried out again, and is found (G8)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ledger.audit import Level, verify_binding
from ledger.audit.orders import check_orders
from ledger.audit.report import LevelReport
from ledger.store.audited_orders import AuditedOrder
from ledger.store.ledger import Ledger
from tests.support.audit_reports import audited, edit, failed
from tests.support.ordered_runs import WAITS
from tests.support.recorded_runs import BINDING, make_plan, recorder
from tests.support.store import connection_to

pytestmark = pytest.mark.integration

NEW = make_plan("ordered-later", creates=1, deletes=0)


@pytest.mark.rules("G8")
async def test_g08_orders_that_came_to_every_end_hold(ordered_dsns: dict[str, str]) -> None:
    report = await audited(ordered_dsns)
    assert report.findings == ()
    assert report.level(Level.ORDERS).checked == 7


_STATE = "update ledger.inbox set state = '{state}', closed_at = {closed} where run_id = '{run}' and kind = '{kind}'"


def _state(run: str, kind: str, state: str) -> str:
    closed = "null" if state == "open" else "clock_timestamp()"
    return _STATE.format(run=run, kind=kind, state=state, closed=closed)


_STATES = {
    "one that waits, closed": _state("ordered-waits", "commit", "done"),
    "one that waits, refused": _state("ordered-waits", "commit", "refused"),
    "a refused one, opened": _state("ordered-refused", "commit", "open"),
    "a refused one, done": _state("ordered-refused", "commit", "done"),
    "an applied one, opened": _state("ordered-refused", "resume", "open"),
    "an applied one, refused": _state("ordered-refused", "resume", "refused"),
    "a stopped one, opened": _state("ordered-stopped", "commit", "open"),
    "one of a dead writer, closed": _state("ordered-stopped", "resume", "done"),
    "one of a dead writer that must not go on, opened": _state("ordered-dead", "commit", "open"),
    "a stop, refused": _state("ordered-stopped", "stop", "refused"),
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("statement", _STATES.values(), ids=_STATES)
async def test_g08_an_order_in_another_state_than_its_runs_end_says_is_found(
    ordered_dsns: dict[str, str], statement: str
) -> None:
    await edit(ordered_dsns, statement)
    assert failed(await audited(ordered_dsns)) == {Level.ORDERS}


_RESUME = "where run_id = 'ordered-stopped' and kind = 'resume'"
_OTHERS = {
    "who ordered it": f"update ledger.inbox set body = replace(body, 'eve', 'ada') {_RESUME}",
    "why": f"update ledger.inbox set body = replace(body, 'safe', 'late') {_RESUME}",
    "under which policy": "update ledger.inbox set body ="
    f" replace(body, '\"allow_stale\":false', '\"allow_stale\":true') {_RESUME}",
    "who had a refused one begin": "update ledger.inbox set body = replace(body, 'eve', 'ada')"
    " where run_id = 'ordered-refused' and kind = 'resume'",
    "no words at all": f"update ledger.inbox set body = '{{}}' {_RESUME}",
    "the resume of a refused one taken out": "with gone as (delete from ledger.inbox"
    " where run_id = 'ordered-refused' and kind = 'resume' returning inbox_id)"
    " update ledger.inbox set state = 'done' where run_id = 'ordered-refused' and kind = 'commit'",
    "a resume taken out": f"delete from ledger.inbox {_RESUME}",
    "a stop taken out": "delete from ledger.inbox where kind = 'stop'",
    "another turn": "update ledger.inbox set inbox_id = inbox_id + 100 where run_id = 'ordered-waits'",
    "ordered before its commit": f"update ledger.inbox set position = 1 {_RESUME}",
    "put in": "insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position)"
    " select binding_id, inbox_id + 1, gen_random_uuid(), 'resume', 'made-up', body, position from ledger.inbox"
    " order by inbox_id desc limit 1",
    "a commit put in": "insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position,"
    " commit_id, plan_checksum, artifact_digest, source) select binding_id, inbox_id + 1, gen_random_uuid(), kind,"
    " 'made-up', body, position, gen_random_uuid(), plan_checksum, artifact_digest, source from ledger.inbox"
    " order by inbox_id desc limit 1",
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("statement", _OTHERS.values(), ids=_OTHERS)
async def test_g08_an_order_that_the_log_does_not_know_is_found(ordered_dsns: dict[str, str], statement: str) -> None:
    await edit(ordered_dsns, statement)
    assert failed(await audited(ordered_dsns)) == {Level.ORDERS}


@pytest.mark.rules("G8")
async def test_g08_a_commit_that_waits_and_is_taken_out_of_the_inbox_is_found(ordered_dsns: dict[str, str]) -> None:
    await edit(ordered_dsns, f"delete from ledger.inbox where run_id = '{WAITS.run_id}'")
    orders = (await audited(ordered_dsns)).level(Level.ORDERS)
    assert [finding.name for finding in orders.findings] == ["OrderMissing"]


@pytest.mark.rules("G8", "G2")
@pytest.mark.parametrize("epoch", ["writer_epoch - 1", "writer_epoch + 1"])
async def test_g08_an_epoch_that_was_never_claimed_is_found(ordered_dsns: dict[str, str], epoch: str) -> None:
    await edit(ordered_dsns, f"update ledger.binding set writer_epoch = {epoch}")
    assert failed(await audited(ordered_dsns)) == {Level.HEAD}


@pytest.mark.rules("G8")
async def test_what_is_ordered_and_ended_during_an_audit_looks_like_no_edit(
    ordered_dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The head is read first and the inbox last; an order may be closed by an event behind that head.
    async with await Ledger.open(ordered_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        row = (await ledger.bindings())[0]

        async def writer_goes_on(orders: AsyncIterator[AuditedOrder] | None, report: LevelReport) -> None:
            async with connection_to(ordered_dsns["admin"]) as admin:
                await admin.execute("update ledger.binding set lease_expires_at = clock_timestamp()")
            async with recorder(ordered_dsns) as recording:
                await recording.commit(NEW)
                await recording.started(WAITS)
                for ordinal in range(len(WAITS.operations)):
                    await recording.outcome(WAITS, ordinal, "applied")
                await recording.ended(WAITS, "run.applied")
            await check_orders(orders, report)

        monkeypatch.setattr("ledger.audit.verify.check_orders", writer_goes_on)
        report = await verify_binding(ledger, BINDING)
    assert report.findings == ()
    assert (report.head_position, report.level(Level.ORDERS).checked) == (row.head_position, 8)
