"""``history`` and ``blame``: who is behind each value, what was there before, and what is in doubt."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ledger.audit.errors import NeverWrittenError
from ledger.audit.history import ObjectHistory, object_history, require_histories
from ledger.plan.model import PlannedOperation
from ledger.store.ledger import Ledger
from tests.support.operations import create, one
from tests.support.ordered_runs import REFUSED
from tests.support.recorded_runs import recorder
from tests.support.told_story import CREATED, DELETED, DOUBTED, TAG, UPDATED, commit, tag, tell, told_plan

pytestmark = pytest.mark.integration


async def _history(dsns: dict[str, str], name: str) -> ObjectHistory:
    """With the reader's rights alone."""
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as ledger:
        found = await object_history(ledger, (await ledger.bindings())[0], TAG, {"name": name})
    assert found is not None
    return found


def _named(document: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(entry for entry in document["attributes"] if entry["name"] == name)
    return found


@pytest.mark.rules("G3", "H16")
async def test_history_tells_every_outcome_of_an_object_in_order(told_dsns: dict[str, str]) -> None:
    document = (await _history(told_dsns, "red")).document()
    told = [
        (entry["run_id"], entry["outcome"], entry["attempt"], entry["source"], entry["actor"], entry["reason"])
        for entry in document["assertions"]
    ]
    assert told == [
        ("run-create", "applied", 1, "netbox", "ada", "first import"),
        ("run-update", "unknown", 1, "library", "bob", "colours of the year"),
        ("run-update", "applied", 2, "library", "bob", "colours of the year"),
        ("run-doubt", "unknown", 1, "netbox", "ada", "ticket 7"),
    ]
    positions = [entry["position"] for entry in document["assertions"]]
    assert positions == sorted(positions)
    assert [entry["plan_checksum"] for entry in document["assertions"]] == [
        CREATED.checksum,
        UPDATED.checksum,
        UPDATED.checksum,
        DOUBTED.checksum,
    ]
    first, _, second, _ = document["assertions"]
    assert first["resumed"] is None
    assert (second["resumed"]["by"], second["resumed"]["reason"]) == ("eve", "looked, it is safe")


@pytest.mark.rules("H16", "G8")
async def test_who_had_a_refused_run_begin_is_told_of_each_value_that_it_wrote(ordered_dsns: dict[str, str]) -> None:
    (operation,) = REFUSED.operations
    async with await Ledger.open(ordered_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        (row,) = await ledger.bindings()
        found = await object_history(ledger, row, operation.kind, operation.identity)
    assert found is not None
    (told,) = (entry for entry in found.document()["assertions"] if entry["run_id"] == REFUSED.run_id)
    assert (told["resumed"]["by"], told["resumed"]["reason"]) == ("eve", "it is safe")


@pytest.mark.rules("H16")
async def test_history_has_the_values_that_were_there_before(told_dsns: dict[str, str]) -> None:
    created, _, changed, _ = (await _history(told_dsns, "red")).document()["assertions"]
    # before a create there was nothing; an update observed what differed, and what is not named was as it is sent
    assert created["fields"] == {
        "description": {"value": "a"},
        "name": {"value": "red"},
        "tags": {"value": ["x"]},
    }
    assert changed["fields"] == {
        "description": {"value": "warm", "before": "a"},
        "name": {"value": "red", "before": "red"},
        "tags": {"value": ["x"], "before": ["x"]},
    }


@pytest.mark.rules("G5", "G6")
async def test_blame_names_the_last_certain_write_and_the_doubt_behind_it(told_dsns: dict[str, str]) -> None:
    document = (await _history(told_dsns, "red")).blame()
    description = _named(document, "description")
    assert (description["value"], description["run_id"], description["actor"]) == ("warm", "run-update", "bob")
    assert description["before"] == "a"
    assert [(entry["value"], entry["run_id"]) for entry in description["earlier"]] == [("a", "run-create")]
    assert [(entry["value"], entry["run_id"]) for entry in description["in_doubt"]] == [("a", "run-doubt")]
    tags = _named(document, "tags")
    assert (tags["run_id"], tags["in_doubt"]) == ("run-update", [])


@pytest.mark.rules("G5")
async def test_blame_does_not_count_what_failed_or_was_not_attempted(told_dsns: dict[str, str]) -> None:
    document = (await _history(told_dsns, "blue")).blame()
    description = _named(document, "description")
    assert (description["value"], description["run_id"]) == ("b", "run-create")
    assert (description["earlier"], description["in_doubt"]) == ([], [])


@pytest.mark.rules("P111")
async def test_blame_tells_a_deletion_that_was_only_recorded(told_dsns: dict[str, str]) -> None:
    document = (await _history(told_dsns, "green")).blame()
    assert [entry["run_id"] for entry in document["deletes_recorded"]] == [DELETED.run_id]
    assert _named(document, "name")["run_id"] == "run-create"


@pytest.mark.rules("H16")
async def test_an_object_that_came_back_under_another_id_was_removed_by_somebody_else(
    ledger_dsns: dict[str, str],
) -> None:
    first, second, *_ = [operation.identity["name"] for operation in CREATED.operations]
    # the recorder's destination calls what it writes node-N by the operation's place in its plan
    again = {name: told_plan(f"run-{name}", "netbox", [tag(name, note="back")]) for name in (first, second)}
    async with recorder(ledger_dsns) as recording:
        await tell(recording)
        for plan in again.values():
            await commit(recording, plan, actor="ada", reason="")
            await recording.started(plan)
            await recording.outcome(plan, 0, "applied")
            await recording.ended(plan, "run.applied")
    last = (await _history(ledger_dsns, second)).blame()["node_changes"][-1]
    assert (last["run_id"], last["action"], last["node_id"]) == (f"run-{second}", "create", "node-0")
    assert last["before"] != "node-0"
    applied = [entry for entry in (await _history(ledger_dsns, first)).assertions if entry.result == "applied"]
    same = {entry.facts["node_id"] for entry in applied} == {"node-0"}
    assert ((await _history(ledger_dsns, first)).node_changes() == []) is same


def _rack(name: str, site: str) -> PlannedOperation:
    identity = {"name": name, "site": {"identity": {"name": site}, "peer_kind": "LocationSite"}}
    return create("LocationRack", identity, {"name": name}, one("site", "LocationSite", name=site))


@pytest.mark.rules("H16")
async def test_an_object_is_found_by_a_value_of_what_it_refers_to(ledger_dsns: dict[str, str]) -> None:
    racks = told_plan("run-racks", "netbox", [_rack("r1", "lab"), _rack("r1", "attic"), _rack("r2", "lab")])
    async with recorder(ledger_dsns) as recording:
        await commit(recording, racks, actor="ada", reason="")
        await recording.started(racks)
        for ordinal in range(3):
            await recording.outcome(racks, ordinal, "applied")
        await recording.ended(racks, "run.applied")
        rows = await recording.ledger.bindings()

        async def named(**identity: str) -> tuple[str, str]:
            found = await require_histories(recording.ledger, rows, "LocationRack", [identity])
            return str(found[0].identity["name"]), str(found[0].identity["site"]["identity"]["name"])

        assert await named(name="r1", site="attic") == ("r1", "attic")
        assert await named(**{"name": "r1", "site.name": "lab"}) == ("r1", "lab")
        assert await named(name="r2") == ("r2", "lab")
        with pytest.raises(
            NeverWrittenError, match=r"2 objects that may be meant: LocationRack\(name=\"r1\""
        ) as several:
            await named(name="r1")
        assert "attic" in several.value.found
        with pytest.raises(NeverWrittenError, match=r"no LocationRack with name=\"r1\", site=\"cellar\""):
            await named(name="r1", site="cellar")
        assert await named(site="attic") == ("r1", "attic")


@pytest.mark.parametrize(
    ("kind", "identity", "found"),
    [
        ("BuiltinTags", {"name": "red"}, r"no object of the kind BuiltinTags \(did you mean BuiltinTag\?\)"),
        ("Pear", {"name": "red"}, "no object of the kind Pear"),
        (TAG, {"name": "gren"}, r'no BuiltinTag with name="gren" \(did you mean name="green"\?\)'),
        (TAG, {"name": "pink"}, 'no BuiltinTag with name="pink"'),
        (TAG, {"label": "red"}, r'named like BuiltinTag\(name="'),
    ],
)
async def test_a_slip_of_the_hand_is_told_what_the_ledger_knows(
    told_dsns: dict[str, str], kind: str, identity: dict[str, Any], found: str
) -> None:
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        with pytest.raises(NeverWrittenError) as raised:
            await require_histories(ledger, await ledger.bindings(), kind, [identity])
    assert re.search(f"{found}$" if "like" not in found else found, raised.value.found)


async def test_an_object_that_nobody_wrote_is_a_named_refusal(told_dsns: dict[str, str]) -> None:
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        rows = await ledger.bindings()
        with pytest.raises(NeverWrittenError, match="pink"):
            await require_histories(ledger, rows, TAG, [{"name": "pink"}])
        # the first reading of the identity that is known wins
        found = await require_histories(ledger, rows, TAG, [{"name": 1}, {"name": "red"}])
    assert [entry.identity for entry in found] == [{"name": "red"}]
