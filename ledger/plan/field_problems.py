"""Describes faults in the fields of a record without showing any value (G12).

Names are escaped and cut, because they may come from a hostile record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from ledger.plan.layout import shown

_SHOWN_PROBLEMS: Final = 10
_SHOWN_MESSAGE: Final = 400

_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is no key of the format",
    "string_type": "is no text",
    "int_type": "is no whole number",
    "bool_type": "is neither true nor false",
    "dict_type": "is no object",
    "model_type": "is no object",
    "list_type": "is no list",
    "string_too_short": "is empty",
    "string_pattern_mismatch": "is not of the form {pattern}",
    "literal_error": "is none of {expected}",
    "greater_than_equal": "is less than {ge}",
}
"""By the type of the validator's error. What is in braces comes from our own models, never from the input."""


def field_problems(exc: ValidationError) -> str:
    """What a validation found, by field; at most ten of them, and how many there are besides."""
    problems = [_problem(error) for error in exc.errors(include_url=False, include_input=False)[:_SHOWN_PROBLEMS]]
    rest = exc.error_count() - _SHOWN_PROBLEMS
    return "; ".join(problems) + (f"; and {rest} more" if rest > 0 else "")


def _problem(error: Any) -> str:
    place = ".".join(_part(part) for part in error["loc"])
    known = _WORDS.get(error["type"])
    if known is not None:
        return f"{place or 'it'} {known.format_map(error.get('ctx', {}))}"
    return f"{place}: {_cut(error['msg'])}" if place else _cut(error["msg"])


def _part(part: str | int) -> str:
    return str(part) if isinstance(part, int) else shown(part).strip("'\"")


def _cut(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text if len(text) <= _SHOWN_MESSAGE else f"{text[:_SHOWN_MESSAGE]}..."
