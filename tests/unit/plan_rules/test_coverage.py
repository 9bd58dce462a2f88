"""The account of every resource: forty considered, forty reported, one action each (H5 to H25, design 4.12)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ledger.plan.canonical import canonical_identity, canonical_json_bytes, canonical_json_text
from ledger.plan.coverage import (
    COVERAGE_ACTIONS,
    CoverageLine,
    Difference,
    MappingEntry,
    Providers,
    counts,
    coverage_bytes,
)
from ledger.plan.coverage_account import coverage_disagreements, read_coverage
from ledger.plan.errors import CoverageInvalidError
from ledger.plan.model import PlannedOperation
from ledger.plan.unchanged_line import Selection, UnchangedLine
from tests.support.plan_rules import coverage_line as line
from tests.support.plan_rules import create, operation, update

CHANGED = {"description": Difference(observed=None, desired="")}


def forty() -> list[CoverageLine]:
    made = [line("none", "BuiltinTag", {"name": f"same-{number}"}) for number in range(34)]
    made += [line("create", "BuiltinTag", {"name": f"new-{number}"}, tier=number) for number in range(3)]
    made += [line("update", "BuiltinTag", {"name": "changed"}, differences=CHANGED)]
    made += [line("remove", "BuiltinTag", {"name": "gone"})]
    made += [line("skip", "BuiltinTag", {"name": "left"}, reason="its parent was skipped")]
    return made


def data(lines: list[CoverageLine]) -> bytes:
    return b"".join(coverage_bytes(lines))


@pytest.mark.rules("H5", "H11", "H12", "H14")
def test_a_plan_over_forty_resources_reports_forty_with_all_five_counts() -> None:
    read = read_coverage(data(forty()))
    assert len(read) == 40
    assert counts(read) == {"create": 3, "update": 1, "remove": 1, "skip": 1, "none": 34}
    assert counts([]) == dict.fromkeys(COVERAGE_ACTIONS, 0)


UNCHANGED_FILTERS: list[list[dict[str, Any]]] = [[], [{"field": "a.b", "operation": "in", "value": ["é", 1, None]}]]


@pytest.mark.rules("H6", "H11", "H24")
@pytest.mark.parametrize("filters", UNCHANGED_FILTERS)
@given(
    name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1),
    kind=st.sampled_from(["BuiltinTag", 'Quoted"Kind', "Ünïcode"]),
    tier=st.integers(0, 10**6),
    index=st.integers(0, 999),
)
def test_the_short_way_of_an_unchanged_resource_writes_what_the_record_is(
    filters: list[dict[str, Any]], name: str, kind: str, tier: int, index: int
) -> None:
    identity = canonical_identity({"name": name, "peer": {"identity": {"n": 1.5}, "peer_kind": name}}, kind=kind)
    entry, providers = MappingEntry(index=index, name=name), Providers(source=name, destination="infrahub")
    whole = CoverageLine(
        kind=kind, identity=identity, action="none", tier=tier, destination_id=f"id {name}", entry=entry,
        filters=filters, providers=providers,
    )  # fmt: skip
    selection = Selection(kind=kind, tier=tier, entry=entry, filters=filters, providers=providers)
    short = UnchangedLine(selection, identity, canonical_json_text(identity), f"id {name}")
    assert (short.line(), short.order, short.resource) == (whole.line(), whole.order, whole.resource)
    assert (short.action, short.kind, short.identity) == (whole.action, whole.kind, whole.identity)


@pytest.mark.rules("H5", "H6")
def test_the_short_way_refuses_what_no_reader_accepts() -> None:
    selection = Selection(
        kind="BuiltinTag", tier=0, entry=MappingEntry(index=0, name="tags"), filters=[],
        providers=Providers(source="a", destination="b"),
    )  # fmt: skip
    with pytest.raises(CoverageInvalidError):
        UnchangedLine(selection, {}, "{}", "id")
    with pytest.raises(CoverageInvalidError):
        UnchangedLine(selection, {"name": "a"}, '{"name":"a"}', " ")
    twice = UnchangedLine(selection, {"name": "a"}, '{"name":"a"}', "id")
    with pytest.raises(CoverageInvalidError):
        coverage_bytes([twice, UnchangedLine(selection, {"name": "a"}, '{"name":"a"}', "id")])


@pytest.mark.rules("H14")
def test_the_vocabulary_is_five_words() -> None:
    assert set(COVERAGE_ACTIONS) == {"create", "update", "remove", "skip", "none"}
    with pytest.raises(ValidationError):
        line("restart", "Service", {"name": "nginx"})


@pytest.mark.rules("H15", "H16", "H17", "H18", "H19")
def test_a_line_says_resource_action_differences_providers_entry_filters_and_reason() -> None:
    kept = line(
        "update",
        "DcimDevice",
        {"name": "sw1"},
        tier=2,
        differences={"mtu": Difference(observed=9000, desired=None)},
        entry=MappingEntry(index=12, name="dcim.devices"),
        filters=[{"field": "name", "operation": "is_not_empty"}],
        providers=Providers(source="jsonl", destination="infrahub"),
        reason="primary_address left out to break a cycle",
    )
    (read,) = read_coverage(data([kept]))
    assert read == kept
    assert read.record()["differences"] == {"mtu": {"desired": None, "observed": 9000}}


@pytest.mark.rules("H23", "H24", "H25", "A77")
@given(order=st.permutations(range(40)))
def test_the_bytes_do_not_depend_on_the_order_of_the_lines(order: list[int]) -> None:
    lines = forty()
    assert data([lines[index] for index in order]) == data(lines)


@pytest.mark.rules("A14", "A15", "H24")
def test_lines_are_canonical_and_ordered_by_tier_and_operation() -> None:
    text = data(forty())
    read = read_coverage(text)
    assert [item.tier for item in read] == sorted(item.tier for item in read)
    written = [item.operation_id for item in read if item.operation_id and item.tier == 0]
    assert written == sorted(str(name) for name in written)
    assert text == b"".join(canonical_json_bytes(item.record()) + b"\n" for item in read)


@pytest.mark.rules("H5")
def test_two_actions_for_one_resource_are_refused_naming_both() -> None:
    twice = [line("none", "BuiltinTag", {"name": "a"}), line("skip", "BuiltinTag", {"name": "a"}, reason="why")]
    with pytest.raises(CoverageInvalidError) as refusal:
        coverage_bytes(twice)
    assert 'BuiltinTag(name="a")' in refusal.value.findings[0].checked
    text = b"".join(item.line() for item in sorted(twice, key=lambda item: item.order))
    with pytest.raises(CoverageInvalidError):
        read_coverage(text)


def test_one_object_in_two_mapping_entries_is_considered_twice() -> None:
    other = MappingEntry(index=1, name="other")
    both = [line("none", "BuiltinTag", {"name": "a"}), line("none", "BuiltinTag", {"name": "a"}, entry=other)]
    assert len(read_coverage(data(both))) == 2


@pytest.mark.rules("H6", "H7", "H8", "H9", "H10", "H18", "H19", "A56")
@pytest.mark.parametrize(
    ("action", "fields", "problem"),
    [
        ("create", {"operation_id": None}, "has an operation"),
        ("create", {"operation_id": "op_0000000000000000"}, "does not match"),
        ("create", {"destination_id": "x"}, "not at the destination"),
        ("update", {"operation_id": None, "differences": CHANGED}, "has an operation"),
        ("update", {"destination_id": " ", "differences": CHANGED}, "names its id"),
        ("update", {"differences": {}}, "differs in at least one field"),
        ("remove", {"destination_id": None}, "names its id"),
        ("none", {"operation_id": "op_0000000000000000"}, "does not match"),
        ("none", {"differences": CHANGED}, "nothing differs"),
        ("none", {"destination_id": None}, "names its id"),
        ("skip", {}, "says why"),
        ("skip", {"reason": "  "}, "says why"),
        ("none", {"entry": None}, "mapping entry"),
        ("none", {"identity": {}}, "identity is empty"),
        ("none", {"tier": -1}, "greater than or equal"),
        ("none", {"unknown": 1}, "Extra inputs"),
    ],
)
def test_a_line_that_contradicts_its_action_is_refused(action: str, fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        line(action, "BuiltinTag", fields.pop("identity", {"name": "a"}), **fields)


def test_an_identity_is_brought_into_canonical_form() -> None:
    assert line("none", "A", {"b": Decimal("1.50"), "a": date(2026, 1, 1)}).identity == {"a": "2026-01-01", "b": "1.50"}


def test_a_remove_has_no_entry_where_several_could_have_selected_it() -> None:
    assert line("remove", "BuiltinTag", {"name": "a"}, entry=None).entry is None


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("text", "word"),
    [
        (b'{"a":1}', "line feed"),
        (b"\n", "coverage.jsonl line 1"),
        (b"[]\n", "record"),
        (b'{"kind": "BuiltinTag"}\n', "canonical"),
        (b'{"kind":"a","kind":"b"}\n', "key"),
        (b"\xff\n", "UTF-8"),
    ],
)
def test_bytes_that_are_no_account_are_refused_by_name(text: bytes, word: str) -> None:
    with pytest.raises(CoverageInvalidError) as refusal:
        read_coverage(text)
    assert any(word in str(finding) for finding in refusal.value.findings)


def test_another_spelling_and_another_order_are_refused() -> None:
    record = line("none", "BuiltinTag", {"name": "a"}).record()
    others = [record | {"differences": {}}, record | {"filters": []}, record | {"reason": None}]
    others.append({name: value for name, value in record.items() if name != "tier"})
    for other in others:
        with pytest.raises(CoverageInvalidError, match="another spelling"):
            read_coverage(canonical_json_bytes(other) + b"\n")
    turned = b"".join(reversed(data(forty()).splitlines(keepends=True)))
    with pytest.raises(CoverageInvalidError, match="another order"):
        read_coverage(turned)


@pytest.mark.rules("G12")
def test_g12_a_refused_line_does_not_show_its_values() -> None:
    with pytest.raises(CoverageInvalidError) as refusal:
        read_coverage(b'{"kind":"a","tier":"hunter2"}\n')
    assert "hunter2" not in str(refusal.value) + "".join(map(str, refusal.value.findings))


@pytest.mark.rules("H4", "H11")
def test_account_and_operations_must_say_the_same() -> None:
    operations: list[PlannedOperation] = [
        create("BuiltinTag", {"name": "a"}),
        update("BuiltinTag", {"name": "b"}, {"description": ""}),
        operation("delete", "BuiltinTag", {"name": "c"}),
    ]
    lines = [
        line("create", "BuiltinTag", {"name": "a"}),
        line("update", "BuiltinTag", {"name": "b"}, differences=CHANGED),
        line("remove", "BuiltinTag", {"name": "c"}),
        line("none", "BuiltinTag", {"name": "d"}),
    ]
    assert coverage_disagreements(lines, operations) == ()
    (missing,) = coverage_disagreements(lines[1:], operations)
    assert operations[0].operation_id in missing.checked
    (surplus,) = coverage_disagreements(lines, operations[1:])
    assert operations[0].operation_id in surplus.checked


@pytest.mark.rules("H16")
@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_observed_and_desired_values_come_back_as_they_were(value: Any) -> None:
    text = canonical_json_bytes(value)
    if b"\\u0000" in text:
        return
    kept = line("update", "A", {"name": "a"}, differences={"field": Difference(observed=value, desired=value)})
    (read,) = read_coverage(data([kept]))
    assert canonical_json_bytes(read.differences["field"].observed) == text
