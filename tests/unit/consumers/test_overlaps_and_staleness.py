"""Several sources, one destination: what was written since the plan was made, and plans that came too late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import canonical_json_bytes, object_key
from ledger.plan.model import PlannedOperation
from ledger.store.records import ForeignWrite
from tests.support.committed_plans import CREATED_AT, changed_tag, gone_tag, port, tag
from tests.support.scripted_destination import refused
from tests.support.writer_bench import Bench


def _written_by_another(
    operation: PlannedOperation, *, position: int = 7, source: str = "from-library"
) -> ForeignWrite:
    return ForeignWrite(
        object_key=object_key(operation.kind, operation.identity),
        source=source,
        run_id="their-run",
        position=position,
        operation_id=operation.operation_id,
        line=operation.line(),
    )


@pytest.mark.rules("P36", "P37")
async def test_a_run_says_which_objects_and_fields_of_another_source_it_overwrites(bench: Bench) -> None:
    # A recorded delete overwrites nothing, whoever wrote the object.
    bench.ledger.foreign = [_written_by_another(tag("shared", description="theirs")), _written_by_another(tag("gone"))]
    operations = bench.commit([tag("shared", description="ours"), tag("own"), gone_tag("gone")])
    assert (await bench.drain()).ending == "run.applied"
    (overlap,) = bench.ledger.body("run.started")["overlaps"]
    assert overlap == {
        "kind": "BuiltinTag",
        "identity": {"name": "shared"},
        "operation_id": operations[0].operation_id,
        "fields": ["description"],
        "source": "from-library",
        "run_id": "their-run",
        "position": 7,
    }


async def test_a_field_to_which_both_give_the_same_value_is_not_overwritten(bench: Bench) -> None:
    bench.ledger.foreign = [_written_by_another(tag("shared", description="same"))]
    bench.commit([tag("shared", description="same")])
    assert (await bench.drain()).ending == "run.applied"
    (overlap,) = bench.ledger.body("run.started")["overlaps"]
    assert (overlap["identity"], overlap["fields"]) == ({"name": "shared"}, [])


async def test_what_was_written_before_the_plan_was_made_is_no_overlap(bench: Bench) -> None:
    bench.ledger.foreign = [_written_by_another(tag("shared"), position=7)]
    bench.commit([tag("shared")], commit={"ledger_position": 7})
    await bench.drain()
    assert bench.ledger.body("run.started")["overlaps"] == []


async def test_without_a_ledger_position_everything_counts_as_written_since(bench: Bench) -> None:
    bench.ledger.foreign = [_written_by_another(tag("shared"), position=1)]
    bench.commit([tag("shared")], commit={"ledger_position": None})
    await bench.drain()
    assert len(bench.ledger.body("run.started")["overlaps"]) == 1


async def test_with_refuse_an_overlap_is_refused_before_the_first_write(bench: Bench) -> None:
    bench.ledger.foreign = [_written_by_another(tag("shared"))]
    bench.commit([tag("shared")], policy=Policy(on_overlap="refuse"))
    outcome = await bench.drain()
    assert [finding.name for finding in outcome.findings] == ["OverlapRefusedError"]
    assert outcome.exit_code is ExitCode.STALE
    assert bench.destination.received == []


@pytest.mark.rules("P59", "P60", "P65")
@pytest.mark.parametrize("on_overlap", ["warn", "refuse"])
async def test_a_create_that_the_server_cannot_match_is_named_by_the_gate_whatever_the_policy(
    bench: Bench, on_overlap: Any
) -> None:
    bench.ledger.foreign = [_written_by_another(port("eth0"))]
    bench.commit([tag("first"), port("eth0"), port("eth1")], policy=Policy(on_overlap=on_overlap))
    outcome = await bench.drain()
    assert [finding.name for finding in outcome.findings] == ["OverlappingCreateError"]
    assert "eth0" in outcome.findings[0].checked
    assert "from-library" in outcome.findings[0].found
    assert outcome.exit_code is ExitCode.REFUSED
    assert bench.destination.received == []


async def test_an_update_of_such_a_kind_is_an_ordinary_overlap(bench: Bench) -> None:
    theirs = port("eth0", description="theirs")
    bench.ledger.foreign = [_written_by_another(theirs)]
    ours = PlannedOperation.model_validate(
        changed_tag("x", "id-1").model_dump()
        | {
            "operation_id": _update_id("LabPortTemplate", "eth0"),
            "kind": "LabPortTemplate",
            "identity": {"name": "eth0"},
            "payload": {"name": "eth0", "description": "ours"},
        }
    )
    bench.commit([ours])
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.body("run.started")["overlaps"][0]["fields"] == ["description"]


def _update_id(kind: str, name: str) -> str:
    from ledger.plan.canonical import operation_id

    return operation_id("update", kind, {"name": name})


async def test_many_overlaps_are_cut_in_the_event_and_stored_whole(bench: Bench) -> None:
    tags = [tag(f"shared-{number}", description="x" * 40) for number in range(900)]
    bench.ledger.foreign = [_written_by_another(each) for each in tags]
    bench.commit(tags)
    assert (await bench.drain()).ending == "run.applied"
    body = bench.ledger.body("run.started")
    assert body["cut"]["total"] == 900
    assert 0 < len(body["overlaps"]) < 900
    assert body["cut"]["sha256"] in bench.ledger.details


async def test_what_this_run_already_applied_is_not_checked_again_when_it_resumes(bench: Bench) -> None:
    operations = bench.commit([port("eth0"), tag("b")])
    bench.destination.answers = {operations[1].operation_id: [refused()]}
    await bench.drain()
    bench.ledger.foreign = [_written_by_another(port("eth0"), position=999)]
    bench.ledger.resume("run-1")
    assert (await bench.drain()).ending == "run.applied"


@pytest.mark.rules("P36", "P37", "H27")
async def test_a_plan_older_than_an_applied_one_of_its_source_is_stale(bench: Bench) -> None:
    bench.ledger.newer = 12
    bench.commit([tag("a")], commit={"ledger_position": 5})
    outcome = await bench.drain()
    assert [finding.name for finding in outcome.findings] == ["StalePlanError"]
    assert "12" in outcome.findings[0].found
    assert outcome.exit_code is ExitCode.STALE
    assert bench.destination.received == []


async def test_allow_stale_applies_it_on_purpose(bench: Bench) -> None:
    bench.ledger.newer = 12
    bench.commit([tag("a")], commit={"ledger_position": 5}, policy=Policy(allow_stale=True))
    assert (await bench.drain()).ending == "run.applied"


async def test_a_resume_may_allow_what_the_commit_did_not(bench: Bench) -> None:
    bench.ledger.newer = 12
    bench.commit([tag("a")], commit={"ledger_position": 5})
    await bench.drain()
    bench.ledger.resume("run-1", Policy(allow_stale=True))
    assert (await bench.drain()).ending == "run.applied"
    assert bench.ledger.kinds("run-1") == ["plan.refused", "run.started", "operation.applied", "run.applied"]
    assert bench.ledger.body("run.started")["policy"]["allow_stale"] is True


@pytest.mark.parametrize(("minutes", "ending"), [(5, "plan.refused"), (-5, "run.applied")])
async def test_without_a_ledger_position_the_manifests_times_decide_and_the_refusal_says_so(
    bench: Bench, minutes: int, ending: str
) -> None:
    last = CREATED_AT + timedelta(minutes=minutes)
    bench.ledger.last_manifest = canonical_json_bytes(
        {"run_id": "newer-run", "created_at": last.isoformat(timespec="microseconds")}
    )
    bench.commit([tag("a")], commit={"ledger_position": None})
    outcome = await bench.drain()
    assert outcome.ending == ending
    if outcome.findings:
        assert "created_at decides" in outcome.findings[0].expected


@pytest.mark.parametrize(
    ("last", "ending"),
    [
        ("2026-11-29T18:00:00Z", "run.applied"),
        ("2026-11-29T18:00:00.000001Z", "plan.refused"),
        ("20261129T180000.5+0000", "plan.refused"),
        ("2026-11-29 17:59:59+00:00", "run.applied"),
    ],
)
async def test_times_are_compared_as_times_whatever_their_spelling(bench: Bench, last: str, ending: str) -> None:
    """A plan made elsewhere may spell its time in another way; CREATED_AT is 18:00."""
    bench.ledger.last_manifest = canonical_json_bytes({"run_id": "newer-run", "created_at": last})
    bench.commit([tag("a")], commit={"ledger_position": None})
    assert (await bench.drain()).ending == ending


@pytest.mark.parametrize("of", [(1, "another-source"), (2, "from-netbox")])
async def test_the_times_of_another_source_or_binding_make_no_plan_stale(bench: Bench, of: tuple[int, str]) -> None:
    last = CREATED_AT + timedelta(minutes=5)
    bench.ledger.last_manifest = canonical_json_bytes(
        {"run_id": "newer-run", "created_at": last.isoformat(timespec="microseconds")}
    )
    bench.ledger.last_manifest_of = of
    bench.commit([tag("a")], commit={"ledger_position": None})
    assert (await bench.drain()).ending == "run.applied"


async def test_a_stale_plan_is_told_with_its_source_and_both_times(bench: Bench) -> None:
    last = (CREATED_AT + timedelta(minutes=5)).isoformat(timespec="microseconds")
    bench.ledger.last_manifest = canonical_json_bytes({"run_id": "newer-run", "created_at": last})
    bench.commit([tag("a")], commit={"ledger_position": None})
    (finding,) = (await bench.drain()).findings
    assert finding.checked == "whether the plan of source from-netbox is still the newest"
    assert f"run newer-run of {last}; this plan is of " in finding.found


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("theirs", "told"),
    [("theirs", "(position 7): the values differ in description"), ("ours", "(position 7): no value differs")],
)
async def test_g11_a_refused_overlap_names_the_fields_that_differ_or_says_that_none_does(
    bench: Bench, theirs: str, told: str
) -> None:
    bench.ledger.foreign = [_written_by_another(tag("shared", description=theirs))]
    bench.commit([tag("shared", description="ours")], policy=Policy(on_overlap="refuse"))
    (finding,) = (await bench.drain()).findings
    assert finding.found == f"source from-library wrote it in run their-run {told}"
