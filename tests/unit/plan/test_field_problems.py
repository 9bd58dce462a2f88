"""What is wrong with a record is said by field, in our words, and without a value."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from ledger.plan.field_problems import field_problems
from ledger.plan.model import DECODED, PlanManifest, PlannedOperation
from tests.support.plans import manifest_document, record

SAID: list[tuple[type[BaseModel], Any, str]] = [
    (PlannedOperation, record(comment="x"), "comment is no key of the format"),
    (PlannedOperation, record(tier="secret"), "tier is no whole number"),
    (PlannedOperation, record(tier=-1), "tier is less than 0"),
    (PlannedOperation, record(operation_id="secret"), "operation_id is not of the form ^op_[0-9a-f]{16}$"),
    (PlannedOperation, record(kind=""), "kind is empty"),
    (PlannedOperation, {**record(), "kind": 7}, "kind is no text"),
    (PlannedOperation, record(action="secret"), "action is none of 'create', 'update' or 'delete'"),
    (PlannedOperation, record(relationships={}), "relationships is no list"),
    (PlannedOperation, record(relationships=["secret"]), "relationships.0 is no object"),
    (PlannedOperation, [], "it is no object"),
    (PlannedOperation, record(payload=["secret"]), "payload is no object"),
    (PlanManifest, manifest_document(b"", delete_operations_computed=1), "delete_operations_computed is neither true"),
    (PlanManifest, manifest_document(b"", run_id=...), "run_id is missing"),
    (PlanManifest, manifest_document(b"", created_at="secret"), "created_at: it is not a time in ISO 8601"),
]


@pytest.mark.rules("A83", "G11", "G12")
@pytest.mark.parametrize(("model", "value", "said"), SAID, ids=[said for *_, said in SAID])
def test_g11_each_problem_is_said_by_field_and_without_its_value(model: type[BaseModel], value: Any, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(value, context=DECODED)
    told = field_problems(caught.value)
    assert said in told
    assert "secret" not in told
    assert not any(
        words in told for words in ("Input should", "Field required", "Extra inputs", "RelationshipReference")
    )


def test_ten_problems_are_told_and_the_others_counted() -> None:
    with pytest.raises(ValidationError) as caught:
        PlannedOperation.model_validate({f"key {number}": 1 for number in range(20)}, context=DECODED)
    told = field_problems(caught.value)
    assert told.count("; ") == 10
    assert told.endswith("; and 15 more")
