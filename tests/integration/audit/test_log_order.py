"""An event that was taken out of a log, every hash computed anew: what is left contradicts itself."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit import Level
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from tests.support.audit_reports import audited, failed
from tests.support.recorded_runs import Recorder, make_commit, make_plan
from tests.support.store import connection_to
from tests.support.tampering import rechain, unguarded

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


async def _without(dsns: dict[str, str], *statements: str) -> list[str]:
    """What is out of place when something was taken out and the chain was made whole again."""
    async with connection_to(dsns["admin"]) as admin, unguarded(admin):
        for statement in statements:
            assert not (await admin.execute(statement)).endswith(" 0")
        await rechain(admin)
    report = await audited(dsns)
    assert failed(report).isdisjoint({Level.POSITIONS, Level.CHAIN}), "the chain is whole"
    found = [finding for finding in report.level(Level.CATALOGUE).findings if finding.name == "EventOutOfPlace"]
    return [f"{finding.checked}: expected {finding.expected}, found {finding.found}" for finding in found]


_TAKEN_OUT = {
    "the end of a run before it was resumed": (
        "delete from ledger.event where kind = 'run.interrupted' and run_id = 'run-update'",
        "what of run run-update was resumed: expected a start and an end before it, found the run going on",
    ),
    "an attempt of which nobody knows": (
        "delete from ledger.event where kind = 'operation.unknown' and run_id = 'run-update'",
        "of run run-update: expected attempt 1, one more than have an outcome, found attempt 2",
    ),
    "the start of a run": (
        "delete from ledger.event where kind = 'run.started' and run_id = 'run-create'",
        "whether run run-create goes on: expected a start or resumption since its last end, found no start",
    ),
    "the resumption": (
        "delete from ledger.event where kind = 'run.resumed'",
        "whether run run-update goes on: expected a start or resumption since its last end, found an end",
    ),
    "the commit": (
        "delete from ledger.event where kind = 'plan.committed' and run_id = 'run-doubt'",
        "the commit of run run-doubt: expected one before it, found none",
    ),
    "the claim of the writer": (
        "delete from ledger.event where kind = 'writer.opened'",
        "the epoch of its writer: expected 0, that of the last claim, found 1",
    ),
}


@pytest.mark.rules("G8", "G3")
@pytest.mark.parametrize(("statement", "told"), _TAKEN_OUT.values(), ids=_TAKEN_OUT)
async def test_g08_what_was_taken_out_is_missed_by_what_presupposes_it(
    told_dsns: dict[str, str], statement: str, told: str
) -> None:
    assert any(text.endswith(told) for text in await _without(told_dsns, statement))


@pytest.mark.rules("G8")
async def test_g08_a_plan_cannot_have_been_made_where_the_log_had_not_come_to(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    head = (await recording.ledger.bindings())[0].head_position
    commit = make_commit(make_plan("run-later", creates=1)).model_copy(update={"ledger_position": head})
    await recording.ledger.submit_commit(recording.binding_id, commit)
    assert (await audited(ledger_dsns)).holds
    found = await _without(ledger_dsns, "delete from ledger.event where position = 5")
    assert f"event {head}, plan.committed: the end of the log when the plan was made: " in found[-1]
    assert found[-1].endswith(f"expected a position before {head}, found {head}")


@pytest.mark.rules("G8", "G2")
async def test_g08_claims_without_a_gap_and_bodies_that_say_the_same(told_dsns: dict[str, str]) -> None:
    found = await _without(
        told_dsns,
        "update ledger.event set writer_epoch = writer_epoch + 1 where writer_epoch is not null",
        "update ledger.binding set writer_epoch = writer_epoch + 1",
    )
    assert "the epoch in its body: expected 2, found 1" in found[0]
    assert "the epoch that was claimed: expected 1, one more than the last, found 2" in found[1]


@pytest.mark.rules("G8")
async def test_g08_a_head_is_signed_before_it_is_recorded(ledger_dsns: dict[str, str], recording: Recorder) -> None:
    row = (await recording.ledger.bindings())[0]
    await publish_checkpoint(recording.ledger, row, (KEY,))
    assert (await audited(ledger_dsns)).holds
    found = await _without(ledger_dsns, "delete from ledger.event where position = 3")
    assert any("checkpoint.published: the event that was signed" in text for text in found)
