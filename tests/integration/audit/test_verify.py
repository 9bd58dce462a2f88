"""``verify`` against a superuser who switches the triggers off and edits: every change is found, by its level (G8)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from ledger.audit import LedgerTamperedError, Level, Status, UnknownBindingToVerifyError, VerifyReport, verify_binding
from ledger.audit.replay import replay_record
from ledger.binding import DestinationBinding
from ledger.errors import Finding
from ledger.events import Cut, PlanRefused, StoredEvent
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes
from ledger.store.ledger import Ledger
from tests.integration.audit.conftest import record_two_runs
from tests.support.recorded_runs import BINDING, Recorder, make_plan, recorder

pytestmark = pytest.mark.integration

_TABLES = ("event", "binding", "inbox", "plan", "plan_operation", "plan_coverage", "artifact", "detail")


@pytest.fixture
async def recording(ledger_dsns: dict[str, str]) -> AsyncIterator[Recorder]:
    async with recorder(ledger_dsns) as recorded:
        await record_two_runs(recorded)
        yield recorded


async def _report(dsns: dict[str, str]) -> VerifyReport:
    """With the reader's rights alone: an auditor needs no more."""
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        return await verify_binding(ledger, BINDING)


async def _edit(dsns: dict[str, str], *statements: str) -> None:
    connection = await asyncpg.connect(dsns["admin"])
    try:
        for table in _TABLES:
            await connection.execute(f"alter table ledger.{table} disable trigger all")
        for statement in statements:
            await connection.execute(statement)
        # whoever edits a record covers the tracks: everything but the edit is as it was
        for table in _TABLES:
            for trigger in ("refuse_row_change", "refuse_truncate"):
                await connection.execute(f"alter table ledger.{table} enable always trigger {trigger}")
    finally:
        await connection.close()


def _failed(report: VerifyReport) -> set[Level]:
    return {level.level for level in report.levels if level.status is Status.FAILED}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("how", ["disable trigger refuse_truncate", "enable trigger refuse_row_change"])
async def test_g08_a_trigger_that_is_left_off_is_found(recorded_dsns: dict[str, str], how: str) -> None:
    connection = await asyncpg.connect(recorded_dsns["admin"])
    await connection.execute(f"alter table ledger.plan_operation {how}")
    await connection.close()
    report = await _report(recorded_dsns)
    assert _failed(report) == {Level.GUARDS}
    assert "plan_operation" in report.findings[0].checked


@pytest.mark.rules("G8", "G3")
async def test_g08_an_untouched_ledger_holds_and_says_what_was_not_checked(recorded_dsns: dict[str, str]) -> None:
    progress: list[tuple[int, int]] = []
    async with await Ledger.open(recorded_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        report = await verify_binding(ledger, BINDING, progress=lambda done, total: progress.append((done, total)))
        head = (await ledger.bindings())[0]

    assert report.findings == ()
    assert report.holds
    report.require_intact()
    assert (report.events, report.head_position, report.head_hash) == (
        head.head_position,
        head.head_position,
        head.head_hash,
    )
    assert progress[-1] == (head.head_position, head.head_position)
    assert {level.level: level.status for level in report.levels} == {
        Level.POSITIONS: Status.HELD,
        Level.CHAIN: Status.HELD,
        Level.HEAD: Status.HELD,
        Level.CATALOGUE: Status.HELD,
        Level.PLANS: Status.HELD,
        Level.OUTCOMES: Status.HELD,
        Level.GUARDS: Status.HELD,
        Level.CHECKPOINTS: Status.NOT_CHECKED,
        Level.PROJECTIONS: Status.NOT_CHECKED,
    }
    assert report.level(Level.PLANS).checked == 2
    assert report.level(Level.OUTCOMES).checked == 7
    assert "without a trace" in report.level(Level.CHECKPOINTS).unchecked[0]
    assert json.loads(json.dumps(report.document()))["holds"] is True


_EVENT_EDITS = {
    "a body": "update ledger.event set body = replace(body, 'node-1', 'node-9') where kind = 'operation.applied'",
    "a body, respelled": "update ledger.event set body = replace(body, ':', ': ') where position = 4",
    "a kind": "update ledger.event set kind = 'operation.skipped' where kind = 'operation.applied' and position = 4",
    "an operation": "update ledger.event set operation_id = 'op_ffffffffffffffff' where position = 4",
    "a run": "update ledger.event set run_id = 'run-9' where position = 4",
    "an attempt": "update ledger.event set attempt = 7 where position = 4",
    "an epoch": "update ledger.event set writer_epoch = 9 where position = 4",
    "a time": "update ledger.event set recorded_at = recorded_at + interval '1 microsecond' where position = 4",
    "a time without end": "update ledger.event set recorded_at = 'infinity' where position = 4",
    "an event id": "update ledger.event set event_id = gen_random_uuid() where position = 4",
    "a hash": "update ledger.event set hash = decode(repeat('00', 32), 'hex') where position = 4",
    "a link": "update ledger.event set prev_hash = decode(repeat('00', 32), 'hex') where position = 4",
    "the address of the binding": "update ledger.binding set branch = 'other'",
}


@pytest.mark.rules("G8")
@pytest.mark.parametrize("statement", _EVENT_EDITS.values(), ids=_EVENT_EDITS)
async def test_g08_any_edit_of_an_event_is_found(recorded_dsns: dict[str, str], statement: str) -> None:
    await _edit(recorded_dsns, statement)

    async with await Ledger.open(recorded_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        report = await verify_binding(ledger, (await ledger.bindings())[0].binding)

    assert Level.CHAIN in _failed(report)
    with pytest.raises(LedgerTamperedError) as refused:
        report.require_intact()
    assert refused.value.exit_code is ExitCode.TAMPERED
    assert refused.value.findings == report.findings


@pytest.mark.rules("G8")
async def test_g08_a_hole_in_the_middle_is_found(recorded_dsns: dict[str, str]) -> None:
    await _edit(recorded_dsns, "delete from ledger.event where position = 5")

    assert _failed(await _report(recorded_dsns)) >= {Level.POSITIONS, Level.CHAIN}


@pytest.mark.rules("G8")
async def test_g08_two_events_that_changed_places_are_found(recorded_dsns: dict[str, str]) -> None:
    await _edit(
        recorded_dsns,
        "update ledger.event set position = position + 1000 where position in (4, 5)",
        "update ledger.event set position = 5 where position = 1004",
        "update ledger.event set position = 4 where position = 1005",
    )

    assert Level.CHAIN in _failed(await _report(recorded_dsns))


@pytest.mark.rules("G8")
async def test_g08_an_end_cut_off_is_found_by_the_head(recorded_dsns: dict[str, str]) -> None:
    await _edit(recorded_dsns, "delete from ledger.event where position > 6")

    report = await _report(recorded_dsns)
    assert Level.HEAD in _failed(report)
    assert _failed(report).isdisjoint({Level.POSITIONS, Level.CHAIN})


@pytest.mark.rules("G8")
async def test_g08_everything_recomputed_after_an_edit_is_found_by_the_head(recorded_dsns: dict[str, str]) -> None:
    await _edit(recorded_dsns, "update ledger.event set body = replace(body, 'node-1', 'node-9')", _RECHAIN)

    report = await _report(recorded_dsns)
    assert _failed(report) == {Level.HEAD}, "the chain itself is whole again; only the head tells"


@pytest.mark.rules("G8")
async def test_g08_recomputed_head_and_all_is_beyond_this_database_and_said_so(recorded_dsns: dict[str, str]) -> None:
    await _edit(
        recorded_dsns,
        "update ledger.event set body = replace(body, 'node-1', 'node-9')",
        _RECHAIN,
        "update ledger.binding set head_hash ="
        " (select hash from ledger.event where binding_id = binding.id order by position desc limit 1)",
    )

    report = await _report(recorded_dsns)
    assert report.holds
    assert report.level(Level.CHECKPOINTS).status is Status.NOT_CHECKED


_RECHAIN = """
do $$
declare
    v_event ledger.event;
    v_binding ledger.binding;
    v_head bytea := decode(repeat('00', 32), 'hex');
begin
    for v_event in select * from ledger.event order by position loop
        select * into v_binding from ledger.binding where id = v_event.binding_id;
        v_event.hash := ledger.event_hash_v1(v_head, v_binding.url, v_binding.branch, v_event.position,
            v_event.event_id, v_event.kind, v_event.schema_version, v_event.writer_epoch, v_event.run_id,
            v_event.operation_id, v_event.ordinal, v_event.attempt, v_event.recorded_at, v_event.body);
        update ledger.event set prev_hash = v_head, hash = v_event.hash where position = v_event.position;
        v_head := v_event.hash;
    end loop;
end $$
"""


@pytest.mark.rules("G8")
async def test_g08_an_event_put_behind_the_head_is_found(recorded_dsns: dict[str, str]) -> None:
    await _edit(
        recorded_dsns,
        "insert into ledger.event select binding_id, position + 1000, gen_random_uuid(), 'run.applied', 1, 'run-7',"
        " null, null, null, 1, recorded_at, body, prev_hash, hash from ledger.event where position = 2",
    )

    assert _failed(await _report(recorded_dsns)) == {Level.HEAD}


@pytest.mark.rules("G8", "G3")
async def test_g08_an_unknown_kind_fails_an_audit(recorded_dsns: dict[str, str]) -> None:
    await _edit(
        recorded_dsns,
        "update ledger.event set kind = 'run.reconciled' where kind = 'run.stopped'",
        _RECHAIN,
        "update ledger.binding set head_hash = (select hash from ledger.event order by position desc limit 1)",
    )

    report = await _report(recorded_dsns)
    assert _failed(report) == {Level.CATALOGUE}
    assert "run.reconciled" in report.findings[0].found


_MOVED_ON = (
    "do $$ begin update ledger.{table} set ordinal = ordinal + 1000;"
    " update ledger.{table} set ordinal = ordinal - 999; end $$"
)
_PLAN_EDITS = {
    "a line": "update ledger.plan_operation set line = replace(line, 'create-1', 'create-9')",
    "a line taken out": "delete from ledger.plan_operation where ordinal = 1",
    "lines in another order": (
        "update ledger.plan_operation o set line = p.line from ledger.plan_operation p"
        " where p.plan_checksum = o.plan_checksum and p.ordinal = 3 - o.ordinal and o.ordinal in (1, 2)"
    ),
    "the body": "update ledger.plan set body = replace(body, 'v1', 'v2')",
    "the manifest": "update ledger.artifact set manifest = manifest || ' '::bytea",
    "a value of the manifest": (
        "update ledger.artifact set manifest = convert_to(replace(convert_from(manifest, 'UTF8'), 'v1', 'v2'), 'UTF8')"
    ),
    "the manifest, no JSON": "update ledger.artifact set manifest = '\\xff'",
    "the digest": "update ledger.artifact set artifact_digest = decode(repeat('00', 32), 'hex')",
    "coverage": "update ledger.plan_coverage set line = replace(line, 'create', 'update')",
    "coverage taken out": "delete from ledger.plan_coverage where ordinal = 0",
    "the whole artifact": "delete from ledger.artifact",
    "the artifact's source": "update ledger.artifact set source = 'other' where run_id = 'run-1'",
    "the object that a line is found by": (
        "update ledger.plan_operation set object_key = sha256('other') where ordinal = 1"
    ),
    "the last line's place": (
        "update ledger.plan_operation o set ordinal = ordinal + 1 where ordinal ="
        " (select max(ordinal) from ledger.plan_operation p where p.plan_checksum = o.plan_checksum)"
    ),
    "the places of all lines": _MOVED_ON.format(table="plan_operation"),
    "the places of all coverage lines": _MOVED_ON.format(table="plan_coverage"),
    "the operation that a line is found by": "update ledger.plan_operation set operation_id = 'op_0' where ordinal = 1",
    "the order": "delete from ledger.inbox where run_id = 'run-1'",
    "the order's body": "update ledger.inbox set body = replace(body, 'somebody', 'nobody')",
    "the commit that an order is found by": "update ledger.inbox set commit_id = gen_random_uuid()",
    "the plan that an order is found by": "update ledger.inbox set plan_checksum = sha256('other')",
    "the artifact that an order is found by": "update ledger.inbox set artifact_digest = sha256('other')",
    "the source that an order is found by": "update ledger.inbox set source = 'other' where run_id = 'run-1'",
    "the order's place in the log": "update ledger.inbox set position = position + 1",
}


@pytest.mark.rules("G8", "G1")
@pytest.mark.parametrize("statement", _PLAN_EDITS.values(), ids=_PLAN_EDITS)
async def test_g08_any_edit_of_a_stored_plan_is_found(recorded_dsns: dict[str, str], statement: str) -> None:
    await _edit(recorded_dsns, statement)

    assert Level.PLANS in _failed(await _report(recorded_dsns))


@pytest.mark.rules("G3", "P114", "P147")
async def test_g03_an_applied_run_that_is_not_whole_is_found(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    plan = make_plan("run-5", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.ended(plan, "run.applied")

    report = await _report(ledger_dsns)
    assert _failed(report) == {Level.OUTCOMES}
    assert (report.findings[0].expected, report.findings[0].found) == ("3 operations applied or skipped", "1")


@pytest.mark.rules("P111", "P145", "G3")
async def test_g03_a_recorded_delete_that_was_applied_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=0, deletes=1)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")

    assert _failed(await _report(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("P112", "P120", "P127", "G3")
@pytest.mark.parametrize("ordinals", [(1, 0), (0, 2), (1,)], ids=["backwards", "one passed over", "not the first"])
async def test_g03_outcomes_out_of_the_stored_order_are_found(
    recording: Recorder, ledger_dsns: dict[str, str], ordinals: tuple[int, ...]
) -> None:
    plan = make_plan("run-5", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    for ordinal in ordinals:
        await recording.outcome(plan, ordinal, "applied")

    assert _failed(await _report(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("P112", "P127", "G3")
async def test_g03_going_on_behind_a_failed_operation_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=3, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "failed")
    await recording.outcome(plan, 1, "applied")

    assert _failed(await _report(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("G3")
async def test_g03_an_outcome_of_an_operation_that_is_not_the_plans_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan, other = make_plan("run-5", creates=1, deletes=0), make_plan("run-5", creates=4, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.outcome(other, 3, "applied")

    assert _failed(await _report(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("P120", "G3")
async def test_g03_outcomes_that_changed_their_operations_are_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=2, deletes=0)
    swapped = replace(plan, operations=tuple(reversed(plan.operations)))
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(swapped, 0, "applied")
    await recording.outcome(swapped, 1, "applied")

    assert _failed(await _report(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("G3", "G7")
async def test_g03_an_outcome_behind_a_success_is_found(recording: Recorder, ledger_dsns: dict[str, str]) -> None:
    plan = make_plan("run-5", creates=1, deletes=0)
    await recording.commit(plan)
    await recording.started(plan)
    await recording.outcome(plan, 0, "applied")
    await recording.outcome(plan, 0, "failed", attempt=2)

    assert _failed(await _report(ledger_dsns)) == {Level.OUTCOMES}


@pytest.mark.rules("G1", "G8")
async def test_g01_another_manifest_than_the_committed_one_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=1, deletes=0)
    await recording.commit(plan, store=False)
    # The same plan and checksum; only the raw bytes, which the commit's digest covers, are others.
    await recording.store(replace(plan, manifest=plan.manifest + b" "))

    assert _failed(await _report(ledger_dsns)) == {Level.PLANS}


async def test_a_run_that_was_never_verified_is_told_as_not_checked(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    await recording.commit(make_plan("run-5"), store=False)

    report = await _report(ledger_dsns)
    assert report.holds
    assert report.level(Level.PLANS).unchecked == ["run run-5: never verified, so no plan was stored"]


@pytest.mark.rules("G8")
async def test_g08_a_run_with_outcomes_and_without_its_plan_is_found(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    plan = make_plan("run-5", creates=9)
    await recording.commit(plan, store=False)
    await recording.started(plan)

    assert _failed(await _report(ledger_dsns)) == {Level.PLANS}


@pytest.mark.rules("G8")
async def test_g08_a_long_list_that_stands_apart_is_hashed_too(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    finding = Finding(name="N", checked="c", expected="e", found="f", next_action="n")
    whole = canonical_json_bytes([finding.model_dump(mode="json")] * 3)
    sha256 = await recording.ledger.store_detail(whole)
    body = PlanRefused(findings=[finding], cut=Cut(total=3, sha256=sha256))
    await recording.event("plan.refused", body, "run-2", n="refusal")
    assert (await _report(ledger_dsns)).holds

    await _edit(ledger_dsns, "alter table ledger.detail drop constraint detail_check", "delete from ledger.detail")

    assert _failed(await _report(ledger_dsns)) == {Level.PLANS}


async def test_a_binding_that_is_not_there_is_no_intact_one(recording: Recorder) -> None:
    with pytest.raises(UnknownBindingToVerifyError):
        await verify_binding(recording.ledger, DestinationBinding(url="http://other.example", branch="main"))


@pytest.mark.rules("G8")
async def test_g08_times_are_moments_in_any_zone_and_bodies_come_back_byte_for_byte(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    # The server's and the session's zone may be anything; FF40: a time without a zone was read in the server's.
    connection = await asyncpg.connect(ledger_dsns["admin"])
    try:
        name = await connection.fetchval("select current_database()")
        await connection.execute(f"alter database \"{name}\" set timezone = 'Asia/Tokyo'")
    finally:
        await connection.close()

    assert (await _report(ledger_dsns)).holds
    events = [event async for event in recording.ledger.events(recording.binding_id)]
    for event in events:
        record = json.loads(json.dumps(replay_record(event)))
        assert event.recorded_at.utcoffset() is not None
        assert record["recorded_at"].endswith("+00:00")
        assert canonical_json_bytes(record["body"]) == event.body
        assert "body_text" not in record
        assert (record["position"], record["hash"]) == (event.position, event.hash.hex())


@pytest.mark.rules("G8")
async def test_g08_a_fault_of_the_audit_itself_is_no_page_that_cannot_be_read(
    recording: Recorder, ledger_dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Read one by one the audit would go on behind the event at which it failed, as if it had been looked at.
    looked_at: list[int] = []

    def fails_once(_: object, event: StoredEvent) -> None:
        looked_at.append(event.position)
        if len(looked_at) == 3:
            raise ValueError("a fault of this program")

    monkeypatch.setattr("ledger.audit.heads.Heads.feed", fails_once)
    with pytest.raises(ValueError, match="a fault of this program"):
        await _report(ledger_dsns)
