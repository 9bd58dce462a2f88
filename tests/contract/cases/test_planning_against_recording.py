"""What planning lets through against what the real server made of it: stored, and in our normal form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ledger.plan.attribute_values import value_faults
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.plan.normal_form import normal_form
from ledger.schema import parse_schema
from tests.contract.cases.attribute_inputs import VALUES
from tests.contract.cases.recording import Transcript, read_answers
from tests.contract.cases.schema import sandbox_document

pytestmark = pytest.mark.contract

SENT = [(field, label) for field, values in VALUES.items() for label in values if field not in ("secret", "hashed")]

STRICTER = {
    "a value that is no text of its own": {
        "amount/text", "amount/text-of-a-fraction", "amount/fraction", "amount/whole-fraction", "amount/true",
        "amount/false", "amount/blank-text", "amount/underscored-text", "amount/exponent", "flag/one", "flag/zero",
        "flag/fraction", "level/text", "level/true", "speed/text", "bounded/text",
    },
    "text that stands for a list or a mapping and is stored as text": {
        "entries/text-of-a-list", "entries/empty-text", "document/text-of-an-object", "document/empty-text",
    },
    "the text NULL, which reads back as null": {"plain/NULL", "area/NULL", "anything/NULL", "code/null-text"},
    "a line break behind it, which the merge check refuses": {"code/newline-behind", "mac/newline-behind"},
    "digits that are no whole address": {"mac/number-as-text"},
    "text that no plan can hold": {"plain/nul"},
    "a fraction, of which nothing is left": {"anything/fraction"},
}  # fmt: skip
"""What the server takes and planning refuses, with the reason."""


@pytest.fixture(scope="module")
def answers() -> dict[str, Transcript]:
    return read_answers()


def planned(field: str, value: Any) -> tuple[list[str], Any]:
    """What planning finds wrong with a value, and its normal form."""
    attribute = parse_schema(sandbox_document()).kinds["ProbeValue"].attributes[field]
    try:
        form = normal_form(attribute, value, kind="ProbeValue")
    except UnserializablePayloadValueError as exc:
        return [exc.found], None
    return [fault.expected for fault in value_faults(attribute, form)], form


@pytest.mark.rules("G6", "P70")
@pytest.mark.parametrize(("field", "label"), SENT, ids=lambda part: part)
def test_g06_what_planning_lets_through_is_stored_in_our_normal_form(
    field: str, label: str, answers: dict[str, Transcript]
) -> None:
    faults, form = planned(field, VALUES[field][label])
    recorded = answers[f"value-{field}/{label}"]
    refused = "errors" in recorded[0]["answer"]
    listed = any(f"{field}/{label}" in values for values in STRICTER.values())
    if faults:
        assert refused or listed, f"refused, though the server takes it: {faults}"
    else:
        assert not refused, f"let through, though the server refuses it: {recorded[0]['answer']['errors']}"
        assert not listed, "listed as refused, and let through"
        stored = recorded[1]["answer"]["data"]["ProbeValue"]["edges"][0]["node"][field]["value"]
        assert json.dumps(stored, sort_keys=True) == json.dumps(form, sort_keys=True)


def test_every_listed_value_is_one_that_was_sent() -> None:
    listed = {name for values in STRICTER.values() for name in values}
    assert listed <= {f"{field}/{label}" for field, label in SENT}
