"""FF36: a plan is applied once; an old one after a new one only where a person says so, and what it meets is said."""

from __future__ import annotations

import json

import pytest

from ledger.commit import Policy
from ledger.exit_codes import ExitCode
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import interface_template
from tests.support.planning import Rows, entry, mapped, operations
from tests.support.real_writer import RealWriter
from tests.support.sync_bench import SyncBench

pytestmark = pytest.mark.integration

KIND = "BuiltinTag"
TAGS = [entry(KIND, "tags", ["name"], mapped("name"), mapped("description"))]


def tags(**descriptions: str | None) -> Rows:
    return {"tags": [{"id": name, "name": name, "description": text} for name, text in descriptions.items()]}


def descriptions(real: RealWriter) -> dict[str, str | None]:
    found = [row["values"] for row in real.content() if row["kind"] == KIND]
    return {values["name"]: values["description"] for values in found}


async def notes(real: RealWriter, run_id: str) -> list[str | None]:
    """What the outcomes of a run say beside their node."""
    events = await real.events(run_id)
    return [json.loads(event.body)["note"] for event in events if event.kind == "operation.applied"]


@pytest.mark.rules("G7", "P36")
def test_ff36_again_is_no_mutation_and_says_when_it_was_applied(cli: CommandLine) -> None:
    cli.source({"name": "prod", "description": "first"}, {"name": "lab", "description": None})
    planned = cli.plan()
    first = cli.summary(cli.apply(planned), 0)
    assert cli.mutations() == 2
    again = cli.run("apply", planned["run"], "--expected-checksum", planned["plan_checksum"])
    assert again.returncode == 0
    assert f"applied before, at {first['ended_at']}" in again.stderr
    assert cli.mutations() == 2
    # Also after somebody edited an object by hand: the run is over, and only a fresh plan looks again.
    node = next(entry.object_id for entry in cli.sandbox.journal.entries() if entry.branch == cli.branch)
    assert node is not None
    cli.sandbox.store.update(node, {"description": "by hand"}, branch=cli.branch)
    assert cli.summary(cli.apply(planned), 0)["ended_at"] == first["ended_at"]
    assert cli.mutations() == 2


@pytest.mark.rules("G7", "P36", "P37", "H27")
async def test_ff36_an_older_plan_is_stale_unless_a_person_overrides_it_and_then_says_what_it_met(
    real: RealWriter,
) -> None:
    """Both were made from an empty destination, where a look at the objects finds nothing to compare."""
    sync = SyncBench(real, TAGS)
    older = await sync.plan(tags(a="old", b="old"))
    newer = await sync.plan(tags(a="new", c="new"))
    assert (await sync.apply(newer)).ending == "run.applied"
    assert await notes(real, newer.run_id) == [None, None]
    requests = len(real.sent())

    stale = await sync.apply(older)
    assert stale.exit_code is ExitCode.STALE
    assert [finding.name for finding in stale.findings] == ["StalePlanError"]
    assert len(real.sent()) == requests
    assert descriptions(real) == {"a": "new", "c": "new"}

    await real.resume(older.run_id, Policy(allow_stale=True))
    assert (await real.writer().drain(older.run_id, by="ada")).ending == "run.applied"
    assert descriptions(real) == {"a": "old", "b": "old", "c": "new"}
    said = {
        operation.identity["name"]: note
        for operation, note in zip(operations(older), await notes(real, older.run_id), strict=True)
    }
    assert said["b"] is None
    assert newer.run_id in str(said["a"])
    assert "was there" in str(said["a"])
    [overlap] = (await real.body(older.run_id, "run.started"))["overlaps"]
    assert (overlap["identity"], overlap["fields"], overlap["run_id"]) == ({"name": "a"}, ["description"], newer.run_id)


@pytest.mark.rules("P36", "H27")
async def test_ff36_two_sources_from_an_empty_destination_and_the_second_says_what_it_met(real: RealWriter) -> None:
    first, second = SyncBench(real, TAGS, "first"), SyncBench(real, TAGS, "second")
    one, other = await first.plan(tags(a="one")), await second.plan(tags(a="two", b="two"))
    assert (await first.apply(one)).ending == "run.applied"
    assert (await second.apply(other)).ending == "run.applied"
    said = [note for note in await notes(real, other.run_id) if note is not None]
    assert len(said) == 1
    assert one.run_id in said[0]
    assert real.sandbox.store.count(KIND, branch=real.branch) == 2
    assert operations(await second.plan(tags(a="two", b="two"))) == ()


@pytest.mark.rules("G7", "H27")
async def test_ff36_plans_of_one_source_from_an_empty_destination_leave_no_orphans(real: RealWriter) -> None:
    """In the field each of them could be applied, again and again, and every time made the objects once more."""
    sync = SyncBench(real, TAGS)
    plans = [await sync.plan(tags(a="x", b="x")) for _ in range(2)]
    assert len({run.manifest.plan_checksum for run in plans}) == 1
    assert (await sync.apply(plans[0])).ending == "run.applied"
    for run in plans[1:]:
        assert (await sync.apply(run)).exit_code is ExitCode.STALE
        await real.resume(run.run_id, Policy(allow_stale=True))
        assert (await real.writer().drain(run.run_id, by="ada")).ending == "run.applied"
        assert all(note is not None for note in await notes(real, run.run_id))
    assert real.sandbox.store.count(KIND, branch=real.branch) == 2


@pytest.mark.rules("P59", "P60", "H27")
async def test_ff36_a_kind_that_the_server_cannot_match_is_refused_although_stale_is_allowed(
    real: RealWriter,
) -> None:
    """Its create cannot meet the object: the server would refuse it in the middle of the run."""
    store, branch = real.sandbox.store, real.branch
    maker = store.create("OrganizationManufacturer", {"name": "M"}, branch=branch)
    store.create("DcimDeviceType", {"name": "T", "manufacturer": maker}, branch=branch)
    for run_id in ("run-1", "run-2"):
        await real.commit(run_id, [interface_template("M", "T", "xe-0")], policy=Policy(allow_stale=True))
    outcome = await real.writer().drain("run-2", by="ada")
    assert outcome.exit_code is ExitCode.REFUSED
    assert [finding.name for finding in outcome.findings] == ["OverlappingCreateError"]
    assert len(real.sent()) == 1


@pytest.mark.rules("H27", "A22")
async def test_ff36_edited_by_hand_after_the_plan(real: RealWriter) -> None:
    """The plan's value wins, once; an edit that deletes the object is the destination's own proof."""
    kept = real.sandbox.store.create(KIND, {"name": "kept", "description": "before"}, branch=real.branch)
    gone = real.sandbox.store.create(KIND, {"name": "gone", "description": "before"}, branch=real.branch)
    sync = SyncBench(real, TAGS)
    run = await sync.plan(tags(kept="after"))
    other = await sync.plan(tags(gone="after"))
    real.sandbox.store.update(kept, {"description": "by hand"}, branch=real.branch)
    assert (await sync.apply(run)).ending == "run.applied"
    assert descriptions(real)["kept"] == "after"
    real.sandbox.store.delete(gone, branch=real.branch)
    outcome = await sync.apply(other, Policy(allow_stale=True))
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    assert (await real.body(other.run_id, "operation.failed"))["error"] == "StaleDestinationIdError"
    assert descriptions(real) == {"kept": "after"}
