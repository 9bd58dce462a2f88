"""Filters mean exactly what they mean in infrahub-sync."""

from __future__ import annotations

from typing import Any

import pytest

from producers.config_model import FilterTable
from producers.errors import FilterEvaluationError
from producers.filters import compile_filter


def _holds(operation: str, field: Any, value: Any = None) -> bool:
    table = FilterTable.model_validate({"field": "f", "operation": operation, "value": value})
    return compile_filter(table).holds({"f": field})


@pytest.mark.parametrize(
    ("operation", "field", "value", "expected"),
    [
        ("==", 1, 1, True),
        ("==", "1", 1, False),
        ("==", True, 1, True),
        ("!=", "a", "b", True),
        (">", "5", 4, True),
        (">", 4, "5", False),
        ("<", 4, 5, True),
        (">=", 5, 5, True),
        ("<=", 6, 5, False),
        ("in", "a", ["a", "b"], True),
        ("in", "c", ["a", "b"], False),
        ("in", "a", [], False),
        ("not in", "c", ["a"], True),
        ("not in", None, ["a"], True),
        ("contains", "abc", "b", True),
        ("contains", ["x", "y"], "y", True),
        ("contains", "", "b", False),
        ("contains", None, "b", False),
        ("not contains", "abc", "x", True),
        ("not contains", "", "x", False),
        ("not contains", None, "x", False),
        ("is_empty", None, None, True),
        ("is_empty", "", None, True),
        ("is_empty", 0, None, True),
        ("is_empty", False, None, True),
        ("is_empty", [], None, True),
        ("is_empty", "a", None, False),
        ("is_not_empty", 0, None, False),
        ("is_not_empty", {"a": 1}, None, True),
        ("regex", "abc", "b", False),
        ("regex", "abc", "a", True),
        ("regex", "abc", ".*c", True),
        ("is_ip_within", "10.1.2.3", "10.0.0.0/8", True),
        ("is_ip_within", "11.1.2.3", ["10.0.0.0/8", "11.0.0.0/8"], True),
        ("is_ip_within", "12.1.2.3", ["10.0.0.0/8", "11.0.0.0/8"], False),
        ("is_ip_within", "10.0.0.0/24", "10.0.0.0/8", True),
    ],
)
def test_operation(operation: str, field: Any, value: Any, expected: bool) -> None:
    assert _holds(operation, field, value) is expected


@pytest.mark.parametrize(
    ("operation", "field", "value"),
    [
        (">", None, 1),
        ("<", "many", 1),
        ("regex", None, "a"),
        ("is_ip_within", "no address", "10.0.0.0/8"),
        ("contains", 5, "a"),
    ],
)
def test_g11_a_question_without_an_answer_is_a_named_refusal(operation: str, field: Any, value: Any) -> None:
    with pytest.raises(FilterEvaluationError) as caught:
        _holds(operation, field, value)
    assert operation in caught.value.checked


def test_field_is_a_dotted_path_and_a_missing_step_is_none() -> None:
    condition = compile_filter(FilterTable(field="device.name", operation="is_not_empty"))
    assert condition.holds({"device": {"name": "sw1"}})
    assert not condition.holds({"device": {"name": None}})
    assert not condition.holds({"device": None})
    assert not condition.holds({"device": "text"})
    assert not condition.holds({})
