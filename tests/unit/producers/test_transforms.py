"""Transforms: native results, in a sandbox, None leaves the field alone."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.errors import ConfigurationError
from producers.config_model import TransformTable
from producers.errors import TransformEvaluationError
from producers.transforms import apply_transforms, compile_transform


def _applied(row: dict[str, Any], *pairs: tuple[str, str]) -> dict[str, Any]:
    return apply_transforms(tuple(compile_transform(TransformTable(field=f, expression=e)) for f, e in pairs), row)


def test_results_keep_their_native_type() -> None:
    row = {"u_height": 0.5, "weight": 1.2}
    changed = _applied(
        row, ("float", "{{ u_height | round(0, 'ceil') }}"), ("whole", "{{ u_height | round(0, 'ceil') | int }}")
    )
    assert (changed["float"], type(changed["float"])) == (1.0, float)
    assert (changed["whole"], type(changed["whole"])) == (1, int)


def test_none_leaves_the_field_as_it_was() -> None:
    assert _applied({"a": ""}, ("b", "{{ a or none }}")) == {"a": ""}
    assert _applied({"a": "", "b": 5}, ("b", "{{ a or none }}")) == {"a": "", "b": 5}


def test_each_transform_sees_what_those_before_it_assigned_and_the_row_is_not_changed() -> None:
    row = {"a": 1}
    assert _applied(row, ("b", "{{ a + 1 }}"), ("c", "{{ b + 1 }}")) == {"a": 1, "b": 2, "c": 3}
    assert row == {"a": 1}


@pytest.mark.parametrize(
    "expression", ["{{ missing }}", "{{ missing.part }}", "{{ a.part }}", "{{ {'x': 1}[a] }}", "{{ 1 / 0 }}"]
)
def test_g11_an_expression_that_fails_is_a_named_refusal(expression: str) -> None:
    with pytest.raises(TransformEvaluationError) as caught:
        _applied({"a": "y"}, ("b", expression))
    assert "b = " in caught.value.checked


@pytest.mark.parametrize(
    "expression",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ a.append(1) }}",
        "{{ a.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.environ }}",
    ],
)
def test_expressions_cannot_leave_the_sandbox_or_change_the_row(expression: str) -> None:
    row: dict[str, Any] = {"a": []}
    with pytest.raises(TransformEvaluationError):
        _applied(row, ("b", expression))
    assert row == {"a": []}


def test_a_broken_expression_is_refused_before_any_row() -> None:
    with pytest.raises(ConfigurationError):
        compile_transform(TransformTable(field="a", expression="{{ a"))
