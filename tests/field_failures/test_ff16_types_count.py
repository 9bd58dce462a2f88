"""FF16: 1, 1.0 and true are three values: when compared, when looked up, when read."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from consumers.infrahub.errors import PeerNotFoundError
from ledger.exit_codes import ExitCode
from ledger.plan.canonical import identity_bytes, operation_id
from producers.errors import PlanRefusedError
from tests.support.operations import create, many, one
from tests.support.planning import Rows, entry, mapped
from tests.support.plans import line
from tests.support.whole_path import WholePath, names, operations

DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    *map(mapped, ("name", "settings", "labels", "height", "enabled", "notes")),
    {"name": "site", "static": "dc1", "reference": "LabSite"},
)
ALIKE: list[tuple[Any, Any]] = [
    *combinations((1, 1.0, True, "1"), 2),
    *combinations((0, 0.0, -0.0, False, "0", "", None), 2),
    ([], {}),
    (2**53, 2**53 + 1),
    (2**63, float(2**63)),
    ("\u00e9", "e\u0301"),
    ([1, 2], [2, 1]),
]


def held_by_json(value: Any) -> Any:
    return {"x": value}


def held_by_list(value: Any) -> Any:
    return [[value]]


@pytest.mark.rules("A46", "A53", "H16")
async def test_ff16_values_that_a_language_takes_for_equal_are_an_update_each(lab: WholePath) -> None:
    site = lab.add("LabSite", name="dc1")
    cases = [
        (field, hold(one_value), hold(other))
        for field, hold in (("settings", held_by_json), ("labels", held_by_list))
        for one_value, other in [*ALIKE, *((second, first) for first, second in ALIKE)]
    ]
    for number, (field, there, _) in enumerate(cases):
        lab.add("LabDevice", name=str(number), site=site, **{field: there})
    rows: Rows = {"devices": [{"id": n, "name": str(n), field: new} for n, (field, _, new) in enumerate(cases)]}
    run = await lab.plan(rows, [DEVICES])
    assert run.counts == {"create": 0, "update": len(cases), "remove": 0, "skip": 0, "none": 0}
    planned = {operation.identity["name"]: operation.payload or {} for operation in operations(run)}
    for number, (field, _, new) in enumerate(cases):
        assert repr(planned[str(number)][field]) == repr(new), "the value is planned as it was given"
    # the destination compares as Python does: it will take some of them, and change nothing
    kept = {name: sum(there == new for field, there, new in cases if field == name) for name in ("labels", "settings")}
    told = [warning for warning in run.warnings if "will change nothing" in warning]
    assert [warning.split(" updates")[0] for warning in told] == [
        f"LabDevice.{name}: {count:,}" for name, count in kept.items()
    ]
    # and each is no change against itself
    same: Rows = {"devices": [{"id": n, "name": str(n), field: there} for n, (field, there, _) in enumerate(cases)]}
    assert (await lab.plan(same, [DEVICES])).counts["none"] == len(cases)


@pytest.mark.rules("G11")
async def test_ff16_where_the_destination_knows_one_type_another_is_refused_and_never_no_change(lab: WholePath) -> None:
    site = lab.add("LabSite", name="dc1")
    cases: list[tuple[str, Any, Any]] = [
        ("height", 1, True),
        ("height", 1, 1.0),
        ("height", 1, "1"),
        ("height", 0, False),
        ("height", 0, -0.0),
        ("enabled", True, 1),
        ("enabled", False, 0),
        ("enabled", True, "true"),
        ("notes", "1", 1),
        ("notes", "true", True),
    ]
    for number, (field, there, _) in enumerate(cases):
        lab.add("LabDevice", name=str(number), site=site, **{field: there})
    rows: Rows = {"devices": [{"id": n, "name": str(n), field: new} for n, (field, _, new) in enumerate(cases)]}
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [DEVICES])
    assert names(caught.value) == ["SchemaMismatchError"] * len(cases)
    assert all(
        any(f"id {n})" in f.checked and field in f.checked for f in caught.value.findings)
        for n, (field, _, _) in enumerate(cases)
    )
    assert lab.saved_plans() == []


@pytest.mark.rules("A53", "P70", "P79", "G5")
async def test_ff16_the_look_up_keeps_two_peers_apart_that_python_takes_for_one(lab: WholePath) -> None:
    unit = lab.add("LabUnit", number=1, live=True)
    async with lab.resolver() as resolver:

        async def find(number: Any, live: Any) -> str:
            identity = {"number": number, "live": live}
            return await resolver.resolve(
                peer_kind="LabUnit", identity=identity, referring_operation_id="op_0000000000000001"
            )

        assert await find(1, True) == unit
        for number, live in [(True, True), (1.0, True), ("1", True), (1, 1), (1, "true")]:
            with pytest.raises(PeerNotFoundError):
                await find(number, live)
        # what this apply wrote is not taken for another one either
        resolver.remember("LabUnit", {"number": 0, "live": False}, "written")
        assert await find(0, False) == "written"
        for number, live in [(False, False), (0.0, False), (-0.0, False), (0, 0)]:
            with pytest.raises(PeerNotFoundError):
                await find(number, live)
    assert lab.mutations() == []


@pytest.mark.rules("P83", "P132", "G5")
async def test_ff16_a_reference_of_another_type_stops_with_proof_and_advises_no_create(lab: WholePath) -> None:
    lab.add("LabUnit", number=1, live=True)
    plug = create("LabPlug", {"name": "p"}, {"name": "p"}, one("unit", "LabUnit", number=1, live=1))
    outcome = await lab.apply(lab.hand_made(plug))
    assert outcome.exit_code is ExitCode.STOPPED_UNWRITTEN
    (failed,) = lab.events("operation.failed")
    assert (failed["error"], failed["wrote"]) == ("PeerNotFoundError", False)
    assert "the whole number 1 for live" in failed["message"]
    assert "create the peer" not in failed["next_action"]
    assert lab.sent == [], "no query left"


@pytest.mark.rules("A46", "G1", "G11")
@pytest.mark.parametrize(
    ("said", "written"), [(1, True), (1, 1.0), (1, "1"), (0, -0.0), (0, False), (True, "true"), ("", None)], ids=repr
)
async def test_ff16_an_operation_that_contradicts_itself_is_refused_when_it_is_read(
    lab: WholePath, said: Any, written: Any
) -> None:
    identity = {"number": said, "live": True}
    record = {
        "action": "create",
        "identity": identity,
        "kind": "LabUnit",
        "operation_id": operation_id("create", "LabUnit", identity),
        "payload": {"number": written, "live": True},
        "tier": 0,
    }
    outcome = await lab.apply_lines(line(record))
    assert outcome.exit_code is ExitCode.REFUSED
    assert any("differs from the value that would be written" in finding.found for finding in outcome.findings)
    assert (lab.operation_events(), lab.mutations()) == ([], [])


@pytest.mark.rules("A21", "A53", "P70")
def test_ff16_peers_that_differ_in_type_alone_are_two_peers_of_a_set() -> None:
    reference = many("tags", "LabTag", {"name": 1}, {"name": True}, {"name": "1"}, {"name": 1.0}, {"name": 1})
    assert len(reference.peers) == 4
    assert len({identity_bytes("LabTag", peer) for peer in reference.peers}) == 4
