"""FF09 and FF10: identities keep their structure, and two values that become one are a refusal with both."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from ledger.exit_codes import ExitCode
from ledger.plan.canonical import identity_bytes, operation_id
from ledger.plan.errors import UnserializablePayloadValueError
from producers.errors import PlanRefusedError
from tests.support.memory_source import MemorySource
from tests.support.planning import Rows, entry, mapped
from tests.support.whole_path import WholePath, names, operations

PARTS = entry("LabPart", "parts", ["first", "second"], *map(mapped, ("first", "second", "notes")))
TAGS = entry("LabTag", "tags", ["name"], mapped("name"))
EVENTS = entry("LabEvent", "events", ["since"], mapped("since"), mapped("until"))
DEVICES = entry("LabDevice", "devices", ["name"], *map(mapped, ("name", "settings")), mapped("site", "site", "LabSite"))
SITES = entry("LabSite", "sites", ["name"], mapped("name"))
HAIRS = [("x__y", "z"), ("x", "y__z"), ("x__y__z", " "), ("None", "z"), ("null", "z"), ("x,y", "z"), ("x", "y,z")]


def parts(*pairs: tuple[Any, Any]) -> Rows:
    return {"parts": [{"id": n, "first": first, "second": second} for n, (first, second) in enumerate(pairs)]}


@pytest.mark.rules("A47", "A48", "P70", "H30")
async def test_ff09_identities_that_join_to_one_text_stay_apart_on_the_whole_path(lab: WholePath) -> None:
    pairs = [pair for pair in HAIRS if pair[1].strip()]
    planned = await lab.converge(parts(*pairs), [PARTS])
    assert len({operation.operation_id for operation in planned}) == len(pairs) == lab.count("LabPart")
    assert {(op.identity["first"], op.identity["second"]) for op in planned} == set(pairs)
    # each is found again by itself
    rows = parts(*pairs)
    rows["parts"][0]["notes"] = "changed"
    (changed,) = await lab.converge(rows, [PARTS])
    assert (changed.action, changed.identity) == ("update", {"first": "x__y", "second": "z"})


@pytest.mark.rules("A48", "A50", "G11")
async def test_ff09_a_reference_by_a_joined_text_that_two_objects_have_names_both(lab: WholePath) -> None:
    refers = entry("LabSite", "sites", ["name"], mapped("name"), mapped("racks", "racks", "LabRack"))
    racks = entry("LabRack", "racks", ["site", "name"], mapped("name"), mapped("site", "site", "LabSite"))
    rows: Rows = {
        "sites": [{"id": "a", "name": "a"}, {"id": "a__b", "name": "a__b"}, {"id": "c", "name": "c"}],
        "racks": [
            {"id": 1, "name": "b__r", "site": {"id": "a"}},
            {"id": 2, "name": "r", "site": {"id": "a__b"}},
        ],
    }
    rows["sites"][2]["racks"] = ["a__b__r"]
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(rows, [refers, racks])
    assert "UnresolvedReferenceError" in names(caught.value)
    assert 'LabRack(name="b__r", site=LabSite(name="a"))' in str(caught.value)
    assert 'LabRack(name="r", site=LabSite(name="a__b"))' in str(caught.value)
    assert lab.saved_plans() == []


@pytest.mark.rules("P58", "G11")
async def test_ff09_missing_parts_do_not_make_distinct_rows_equal(lab: WholePath) -> None:
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(parts(("None", "k"), (None, "k"), ("", "k"), ("", "k"), ("null", "k")), [PARTS])
    assert names(caught.value) == ["UnkeyedCreateRefusedError"] * 3
    assert [finding.checked.split("id ")[1] for finding in caught.value.findings] == ["1)", "2)", "3)"]
    assert lab.saved_plans() == []


@pytest.mark.rules("A53", "G11")
async def test_ff09_a_number_is_not_its_text(lab: WholePath) -> None:
    assert identity_bytes("K", {"a": 1}) != identity_bytes("K", {"a": "1"})
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan(parts((1, "k"), ("1", "k")), [PARTS])
    (finding,) = caught.value.findings
    assert finding.name == "SchemaMismatchError"
    assert all(words in str(finding) for words in ("LabPart", "first", "id 0", "the whole number 1"))


ONE_KEY: dict[str, tuple[Any, Any, tuple[str, str]]] = {
    "a decimal and its text": (Decimal("1"), "1", ('first given as Decimal "1"', 'first given as str "1"')),
    "a date and its text": (
        date(2026, 1, 1),
        "2026-01-01",
        ('first given as date "2026-01-01"', 'first given as str "2026-01-01"'),
    ),
    "a moment and its text": (
        datetime(2026, 1, 1, 10, tzinfo=UTC),
        "2026-01-01T10:00:00+00:00",
        ("first given as datetime", "first given as str"),
    ),
    "a moment without a zone and its text": (
        datetime(2026, 1, 1, 10),
        "2026-01-01T10:00:00",
        ("first given as datetime", "first given as str"),
    ),
    "the same text twice": ("x", "x", ("id 0", "id 1")),
}


@pytest.mark.rules("A17", "A18", "A19", "A55", "C15", "G11")
@pytest.mark.parametrize("case", ONE_KEY)
async def test_ff10_two_values_of_one_canonical_form_are_refused_with_both_and_their_types(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    first, second, words = ONE_KEY[case]
    MemorySource(parts((first, "k"), (second, "k"), ("other", "k"))).instead_of_files(monkeypatch)
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan({}, [PARTS])
    assert names(caught.value) == ["DestinationIdentityCollisionError"] * 2
    assert all(word in str(finding) for finding in caught.value.findings for word in (*words, "id 0", "id 1"))
    assert "given as" in str(caught.value) or case == "the same text twice"
    assert (lab.saved_plans(), lab.mutations()) == ([], [])
    # none of them is chosen
    run = await lab.plan({}, [PARTS], continue_on_error=True)
    assert [operation.identity["first"] for operation in operations(run)] == ["other"]


@pytest.mark.rules("A17", "A18")
async def test_ff10_one_instant_in_two_zones_is_two_values_and_one_without_a_zone_a_third(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [
        datetime(2026, 1, 1, 12, tzinfo=timezone(timedelta(hours=2))),
        datetime(2026, 1, 1, 10, tzinfo=UTC),
        datetime(2026, 1, 1, 10),
        "2026-01-01T10:00:00Z",
    ]
    rows = {"events": [{"id": n, "since": moment} for n, moment in enumerate(moments)]}
    MemorySource(rows).instead_of_files(monkeypatch)
    planned = await lab.converge({}, [EVENTS])
    assert {operation.identity["since"] for operation in planned} == {
        "2026-01-01T12:00:00+02:00",
        "2026-01-01T10:00:00+00:00",
        "2026-01-01T10:00:00",
        "2026-01-01T10:00:00Z",
    }
    assert lab.count("LabEvent") == 4


@pytest.mark.rules("A20", "G11")
@pytest.mark.parametrize(
    "settings", [{1: "a"}, {"1": "b", 1: "a"}, {None: "a"}, {True: 1}, {"a": {2.5: "x"}}], ids=repr
)
async def test_ff10_keys_that_are_no_text_are_refused_by_kind_and_field(
    lab: WholePath, monkeypatch: pytest.MonkeyPatch, settings: dict[Any, Any]
) -> None:
    rows = {"sites": [{"id": 1, "name": "s"}], "devices": [{"id": 1, "name": "d", "site": "s", "settings": settings}]}
    MemorySource(rows).instead_of_files(monkeypatch)
    with pytest.raises(PlanRefusedError) as caught:
        await lab.plan({}, [SITES, DEVICES])
    (finding,) = caught.value.findings
    assert finding.name == "UnserializablePayloadValueError"
    assert all(words in str(finding) for words in ("LabDevice.settings", "mapping keys that are text"))
    assert lab.saved_plans() == []
    with pytest.raises(UnserializablePayloadValueError):
        operation_id("create", "LabDevice", settings)


@pytest.mark.rules("A55", "C15", "G11")
async def test_ff10_a_hand_made_plan_with_one_identity_twice_is_refused_when_it_is_read(lab: WholePath) -> None:
    run = await lab.plan({"tags": [{"id": 1, "name": "a"}]}, [TAGS])
    outcome = await lab.apply_lines((run.run_dir / "plan" / "operations.jsonl").read_bytes() * 2)
    assert outcome.exit_code is ExitCode.REFUSED
    assert "DuplicateOperationIdError" in {finding.name for finding in outcome.findings}
    assert lab.mutations() == []
