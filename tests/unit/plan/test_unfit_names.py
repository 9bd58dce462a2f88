"""Names with which a schema is accepted and writes are not: refused by name, for exactly the actions that fail."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.plan.errors import WriteNeverTakenError
from ledger.plan.gate import operation_findings
from ledger.plan.model import PlannedOperation
from ledger.plan.unfit_names import why_never_taken
from ledger.plan.values import check_operation_values
from ledger.schema import DestinationSchema, parse_schema
from tests.support.lab_schema import attribute, lab_document, node
from tests.support.operations import create, update

METHODS = ("get", "items", "keys", "values", "update", "pop", "popitem", "copy", "clear", "setdefault", "fromkeys")


def schema_with(*kinds: dict[str, Any]) -> DestinationSchema:
    document = lab_document()
    return parse_schema(document | {"nodes": [*document["nodes"], *kinds]})


def named(name: str, *fields: str, hfid: bool = True) -> dict[str, Any]:
    attributes = [attribute("name", unique=True), *(attribute(field, optional=True) for field in fields)]
    return node(
        "Odd", name, attributes=attributes, hfid=["name__value"] if hfid else None, constraints=[["name__value"]]
    )


def operations(kind: str) -> dict[str, PlannedOperation]:
    identity = {"name": "a"}
    return {
        "create": create(kind, identity, identity),
        "update": update(kind, identity, identity, destination_id="18ec9baa-2624-4515-e315-189fdf3551df"),
    }


def refused(kind: dict[str, Any]) -> set[str]:
    """The actions that are refused, in plan, gate and write surface alike: they ask the same function."""
    schema = schema_with(kind)
    name = kind["kind"]
    found = set()
    for action, operation in operations(name).items():
        faults = check_operation_values(operation, schema.kinds[name], schema=schema)
        assert all(isinstance(fault, WriteNeverTakenError) for fault in faults)
        findings = operation_findings([operation], schema)
        assert [finding.found for finding in findings] == [fault.found for fault in faults]
        if faults:
            found.add(action)
    return found


@pytest.mark.rules("P63", "G5", "G11")
@pytest.mark.parametrize("method", METHODS)
def test_of_a_mappings_methods_three_stand_in_the_way(method: str) -> None:
    expected = {"get": {"create", "update"}, "items": {"update"}, "keys": {"update"}}
    assert refused(named("Word", method)) == expected.get(method, set())


@pytest.mark.rules("P63", "G5", "G11")
@pytest.mark.parametrize(
    ("name", "hfid", "expected"),
    [
        ("FirmwareUpdate", True, {"create"}),
        ("FirmwareUpdate", False, set()),
        ("Updates", True, {"create"}),
        ("LatelyCreated", True, {"update"}),
        ("CreateUpdate", True, {"update"}),
        ("Upserted", True, set()),
        ("Deletion", True, set()),
        ("Updraft", True, set()),
        ("Word", True, set()),
    ],
)
def test_an_action_in_the_name_of_a_kind_stands_in_the_way_of_others(name: str, hfid: bool, expected: set[str]) -> None:
    assert refused(named(name, hfid=hfid)) == expected


def test_a_refusal_names_what_has_to_be_renamed() -> None:
    kind = schema_with(named("FirmwareUpdate", "get")).kinds["OddFirmwareUpdate"]
    assert why_never_taken(kind, "create") == ["a field named 'get'", "a kind with 'Update' in its name"]
    (fault, _) = check_operation_values(operations("OddFirmwareUpdate")["create"], kind)
    assert "a field named 'get'" in str(fault)
    assert "change that name in the destination's schema" in str(fault)
