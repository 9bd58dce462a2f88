"""Transforms of a mapping entry: Jinja2 expressions with native results, in a sandbox.

The expressions come from a file that a user edits, so they run in Jinja's immutable sandbox. A missing *column* is an
error (``StrictUndefined``); a result of None leaves the field as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined
from jinja2.nativetypes import NativeEnvironment
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ledger.errors import ConfigurationError
from producers.config_model import TransformTable
from producers.errors import TransformEvaluationError


class _SandboxedNativeEnvironment(ImmutableSandboxedEnvironment, NativeEnvironment):
    """Native Python results, no access to attributes that lead out of the data, no change of the record's values."""


_ENVIRONMENT = _SandboxedNativeEnvironment(undefined=StrictUndefined)


@dataclass(frozen=True, slots=True)
class CompiledTransform:
    """One expression, compiled once."""

    field: str
    text: str
    _template: Template

    def apply(self, row: dict[str, Any]) -> None:
        """Assign the expression's result to its field of ``row``, unless it is None.

        Raises:
            TransformEvaluationError: the expression failed for this row.
        """
        try:
            # a result may be any object, whatever Template.render declares
            result: Any = self._template.render(row)
            if isinstance(result, Undefined):
                result._fail_with_undefined_error()
        except Exception as exc:  # a user's expression may raise anything; the row is refused by name
            raise TransformEvaluationError(
                checked=f"the transform {self.field} = {self.text!r}",
                expected="a result",
                found=f"{type(exc).__name__}: {exc}",
                next_action="correct the expression, or filter out the rows that it is not made for",
            ) from exc
        if result is not None:
            row[self.field] = result


def compile_transform(transform: TransformTable) -> CompiledTransform:
    """Compile an expression.

    Raises:
        ConfigurationError: the expression is no Jinja2.
    """
    try:
        template = _ENVIRONMENT.from_string(transform.expression)
    except TemplateError as exc:
        raise ConfigurationError(
            checked=f"the transform {transform.field} = {transform.expression!r}",
            expected="a Jinja2 expression",
            found=f"{type(exc).__name__}: {exc}",
            next_action="correct the expression",
        ) from exc
    return CompiledTransform(field=transform.field, text=transform.expression, _template=template)


def apply_transforms(transforms: tuple[CompiledTransform, ...], row: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the record with all transforms applied in order, each seeing what those before it assigned."""
    changed = dict(row)
    for transform in transforms:
        transform.apply(changed)
    return changed
