"""``verify`` against a superuser who switches the triggers off and edits: every change is found, by its level (G8)."""

from __future__ import annotations

import json

import asyncpg
import pytest

from ledger.audit import LedgerTamperedError, Level, Status, UnknownBindingToVerifyError, verify_binding
from ledger.audit.replay import replay_record
from ledger.binding import DestinationBinding
from ledger.commit import Policy
from ledger.errors import Finding
from ledger.events import Cut, PlanRefused, StoredEvent
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes
from ledger.store.ledger import Ledger
from tests.support.audit_reports import audited, edit, failed
from tests.support.recorded_runs import BINDING, Recorder

pytestmark = pytest.mark.integration


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
        Level.ORDERS: Status.HELD,
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
    await edit(recorded_dsns, statement)

    async with await Ledger.open(recorded_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        report = await verify_binding(ledger, (await ledger.bindings())[0].binding)

    assert Level.CHAIN in failed(report)
    with pytest.raises(LedgerTamperedError) as refused:
        report.require_intact()
    assert refused.value.exit_code is ExitCode.TAMPERED
    assert refused.value.findings == report.findings


@pytest.mark.rules("G8")
async def test_g08_a_hole_in_the_middle_is_found(recorded_dsns: dict[str, str]) -> None:
    await edit(recorded_dsns, "delete from ledger.event where position = 5")

    assert failed(await audited(recorded_dsns)) >= {Level.POSITIONS, Level.CHAIN}


@pytest.mark.rules("G8")
async def test_g08_two_events_that_changed_places_are_found(recorded_dsns: dict[str, str]) -> None:
    await edit(
        recorded_dsns,
        "update ledger.event set position = position + 1000 where position in (4, 5)",
        "update ledger.event set position = 5 where position = 1004",
        "update ledger.event set position = 4 where position = 1005",
    )

    assert Level.CHAIN in failed(await audited(recorded_dsns))


@pytest.mark.rules("G8")
async def test_g08_an_end_cut_off_is_found_by_the_head(recorded_dsns: dict[str, str]) -> None:
    await edit(recorded_dsns, "delete from ledger.event where position > 6")

    report = await audited(recorded_dsns)
    assert Level.HEAD in failed(report)
    assert failed(report).isdisjoint({Level.POSITIONS, Level.CHAIN})


@pytest.mark.rules("G8")
async def test_g08_everything_recomputed_after_an_edit_is_found_by_the_head(recorded_dsns: dict[str, str]) -> None:
    await edit(recorded_dsns, "update ledger.event set body = replace(body, 'node-1', 'node-9')", _RECHAIN)

    report = await audited(recorded_dsns)
    assert failed(report) == {Level.HEAD}, "the chain itself is whole again; only the head tells"


@pytest.mark.rules("G8")
async def test_g08_recomputed_head_and_all_is_beyond_this_database_and_said_so(recorded_dsns: dict[str, str]) -> None:
    await edit(
        recorded_dsns,
        "update ledger.event set body = replace(body, 'node-1', 'node-9')",
        _RECHAIN,
        "update ledger.binding set head_hash ="
        " (select hash from ledger.event where binding_id = binding.id order by position desc limit 1)",
    )

    report = await audited(recorded_dsns)
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
    await edit(
        recorded_dsns,
        "insert into ledger.event select binding_id, position + 1000, gen_random_uuid(), 'run.applied', 1, 'run-7',"
        " null, null, null, 1, recorded_at, body, prev_hash, hash from ledger.event where position = 2",
    )

    assert failed(await audited(recorded_dsns)) == {Level.HEAD}


@pytest.mark.rules("G8", "G3")
async def test_g08_an_unknown_kind_fails_an_audit(recorded_dsns: dict[str, str]) -> None:
    await edit(
        recorded_dsns,
        "update ledger.event set kind = 'run.reconciled' where kind = 'run.stopped'",
        _RECHAIN,
        "update ledger.binding set head_hash = (select hash from ledger.event order by position desc limit 1)",
    )

    report = await audited(recorded_dsns)
    assert failed(report) == {Level.CATALOGUE, Level.ORDERS}, "the order to resume has no end before it"
    assert "run.reconciled" in report.findings[0].found


_MOVED_ON = (
    "do $$ begin update ledger.{table} set ordinal = ordinal + 1000;"
    " update ledger.{table} set ordinal = ordinal - 999; end $$"
)
_OF_COMMITS = " where kind = 'commit'"
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
    "the coverage's digest": "update ledger.plan set coverage_digest = sha256('other')",
    "that there is coverage": (
        "alter table ledger.plan drop constraint plan_coverage_is_whole; update ledger.plan set coverage_digest = null"
    ),
    "the seal": "delete from ledger.plan_seal",
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
    "the commit that an order is found by": "update ledger.inbox set commit_id = gen_random_uuid()" + _OF_COMMITS,
    "the plan that an order is found by": "update ledger.inbox set plan_checksum = sha256('other')" + _OF_COMMITS,
    "the artifact that an order is found by": "update ledger.inbox set artifact_digest = sha256('other')" + _OF_COMMITS,
    "the source that an order is found by": "update ledger.inbox set source = 'other' where run_id = 'run-1'",
    "the order's place in the log": "update ledger.inbox set position = position + 1",
}


@pytest.mark.rules("G8", "G1")
@pytest.mark.parametrize("statement", _PLAN_EDITS.values(), ids=_PLAN_EDITS)
async def test_g08_any_edit_of_a_stored_plan_is_found(recorded_dsns: dict[str, str], statement: str) -> None:
    await edit(recorded_dsns, statement)

    assert Level.PLANS in failed(await audited(recorded_dsns))


@pytest.mark.rules("G8")
async def test_g08_a_long_list_that_stands_apart_is_hashed_too(
    recording: Recorder, ledger_dsns: dict[str, str]
) -> None:
    finding = Finding(name="N", checked="c", expected="e", found="f", next_action="n")
    whole = canonical_json_bytes([finding.model_dump(mode="json")] * 3)
    sha256 = await recording.ledger.store_detail(whole)
    body = PlanRefused(findings=[finding], cut=Cut(total=3, sha256=sha256))
    await recording.ledger.submit_resume(
        recording.binding_id, run_id="run-2", by="somebody", reason="again", policy=Policy()
    )
    await recording.event("plan.refused", body, "run-2", n="refusal")
    assert (await audited(ledger_dsns)).holds

    await edit(ledger_dsns, "alter table ledger.detail drop constraint detail_check", "delete from ledger.detail")

    assert failed(await audited(ledger_dsns)) == {Level.PLANS}


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

    assert (await audited(ledger_dsns)).holds
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
        await audited(ledger_dsns)
