"""FF03: what was applied is not planned again, however it is spelled, and what is left out has a reason."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.exit_codes import ExitCode
from ledger.plan.saved_plan import read_saved_plan
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, operations

FIELDS = ("settings", "labels", "height", "enabled", "since", "notes", "address", "network", "mac", "homepage", "role")
TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
DEVICES = entry(
    "LabDevice",
    "devices",
    ["name"],
    mapped("name"),
    *map(mapped, FIELDS),
    mapped("tags", "tags", "LabTag"),
    {"name": "site", "static": "dc1", "reference": "LabSite"},
)
SITES = entry("LabSite", "sites", ["name"], mapped("name"), mapped("status"), mapped("asset"))


Case = tuple[dict[str, Any], dict[str, Any]]
"""What a device has, and what it is to have."""

THE_SAME: list[Case] = [
    ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}),
    ({"tags": ["a", "b"]}, {"tags": [{"id": "b"}, {"id": "a"}, "a"]}),
    ({"tags": []}, {"tags": []}),
    ({"settings": {"x": 1, "y": [1, 2]}}, {"settings": {"y": [1, 2], "x": 1}}),
    ({"mac": "00:11:22:aa:bb:cc"}, {"mac": "0011.22AA.BBCC"}),
    ({"mac": "0:11:22:aa:bb:cc"}, {"mac": "00-11-22-AA-BB-CC"}),
    ({"address": "10.0.0.1"}, {"address": "10.0.0.1/32"}),
    ({"address": "10.0.0.1/255.255.255.0"}, {"address": "10.0.0.1/24"}),
    ({"address": "2001:DB8:0:0::1"}, {"address": "2001:db8::1/128"}),
    ({"address": "::ffff:10.0.0.1"}, {"address": "::FFFF:A00:1/128"}),
    ({"network": "10.0.0.0/255.0.0.0"}, {"network": "10.0.0.0/8"}),
    ({"enabled": None}, {"enabled": True}),
    ({"notes": "x"}, {}),
]
DIFFERENT: list[Case] = [
    ({"labels": [1, 2]}, {"labels": [2, 1]}),
    ({"labels": [1, 1]}, {"labels": [1]}),
    ({"labels": []}, {"labels": None}),
    ({"notes": None}, {"notes": ""}),
    ({"notes": ""}, {"notes": None}),
    ({"notes": "\u00e9"}, {"notes": "e\u0301"}),
    ({"notes": "x"}, {"notes": "x "}),
    ({"notes": "line\n"}, {"notes": "line\r\n"}),
    ({"settings": {}}, {"settings": []}),
    ({"settings": {"x": None}}, {"settings": {}}),
    ({"settings": {"x": 2**53}}, {"settings": {"x": 2**53 + 1}}),
    ({"since": "2026-01-01T10:00:00Z"}, {"since": "2026-01-01T10:00:00+00:00"}),
    ({"height": 0}, {"height": None}),
    ({"enabled": True}, {"enabled": False}),
    ({"tags": ["a", "b"]}, {"tags": ["a"]}),
    ({"tags": ["a"]}, {"tags": []}),
]


def devices(cases: list[Case], moment: int) -> Rows:
    rows = [{"id": n, "name": f"{n} {case}", **case[moment]} for n, case in enumerate(cases)]
    return {"tags": [{"id": n, "name": n} for n in "ab"], "devices": rows}


@pytest.mark.rules("A21", "A22", "A77", "H30", "H31", "H32")
async def test_ff03_another_spelling_is_no_change_and_a_difference_is_one_update(lab: WholePath) -> None:
    lab.add("LabSite", name="dc1")
    cases = [*THE_SAME, *DIFFERENT]
    await lab.converge(devices(cases, 0), [TAGS, DEVICES])
    changed = await lab.converge(devices(cases, 1), [TAGS, DEVICES])
    assert {operation.action for operation in changed} == {"update"}
    expected = {f"{n} {case}" for n, case in enumerate(cases) if case in DIFFERENT}
    assert {operation.identity["name"] for operation in changed} == expected


@pytest.mark.rules("H32")
async def test_ff03_a_key_is_found_again_as_it_was_written(lab: WholePath) -> None:
    keys = ["\u00e9", "e\u0301", " padded ", "\u200b", "a\u2028b", "NULL ", "\U0001f600", "x" * 1000, "X", "x"]
    rows: Rows = {"tags": [{"id": number, "name": name} for number, name in enumerate(keys)]}
    assert len(await lab.converge(rows, [TAGS])) == lab.count("LabTag") == len(keys)


@pytest.mark.rules("H32")
async def test_ff03_two_keys_that_read_alike_are_two_objects_and_said_so(lab: WholePath) -> None:
    rows: Rows = {"tags": [{"id": 1, "name": "caf\u00e9"}, {"id": 2, "name": "cafe\u0301"}]}
    run = await lab.plan(rows, [TAGS])
    assert any("read alike and stay 2 objects" in warning for warning in run.warnings)
    assert len(await lab.converge(rows, [TAGS])) == 2


@pytest.mark.rules("H30", "H31", "H32")
async def test_ff03_defaults_and_what_the_source_does_not_say_are_no_difference(lab: WholePath) -> None:
    rows: Rows = {"sites": [{"id": 1, "name": "dc1", "status": None, "asset": None}, {"id": 2, "name": "dc2"}]}
    rows["sites"][1]["asset"] = "2"
    assert len(await lab.converge(rows, [SITES])) == 2
    assert lab.values("LabSite", name="dc1")["status"] == "active"
    assert await lab.converge({"sites": [{"id": 1, "name": "dc1"}, {"id": 2, "name": "dc2"}]}, [SITES]) == []


@pytest.mark.rules("H10", "H19", "H30", "C56")
async def test_ff03_what_is_left_out_is_left_out_the_same_way_each_night_and_has_its_reason(lab: WholePath) -> None:
    rows: Rows = {
        "tags": [{"id": 1, "name": "good"}, {"id": 2, "name": None}, {"id": 3, "name": "hidden", "off": True}]
    }
    filtered = {**TAGS, "filters": [{"field": "off", "operation": "is_empty"}]}
    first = await lab.plan(rows, [filtered], continue_on_error=True)
    assert (await lab.apply(first)).exit_code is ExitCode.DONE
    again = await lab.plan(rows, [filtered], continue_on_error=True)
    assert (again.counts["none"], again.counts["skip"], operations(again)) == (1, 1, [])
    assert again.filtered_rows == {"0:tags": 1}
    (skipped,) = (line for line in read_saved_plan(again.run_dir).coverage or () if line.action == "skip")
    assert "name is null" in (skipped.reason or "")
    assert [finding.name for finding in again.findings] == ["UnkeyedCreateRefusedError"]


async def test_ff03_an_object_that_nobody_maps_anew_is_recorded_each_night_and_never_removed(lab: WholePath) -> None:
    lab.add("LabTag", name="theirs")
    rows: Rows = {"tags": [{"id": 1, "name": "ours"}]}
    for _ in range(3):
        run = await lab.plan(rows, [TAGS])
        assert (await lab.apply(run)).exit_code is ExitCode.DONE
    assert [operation.action for operation in operations(run)] == ["delete"]
    assert lab.count("LabTag") == 2
    assert len(lab.mutations()) == 1
