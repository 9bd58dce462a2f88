"""Row filters of a mapping entry, with infrahub-sync's exact meaning of each operation.

Filters look at the raw record of the source, before any transform. All must hold. What is odd about them is upstream's
and kept, because a configuration was written against it: 0 and false are "empty", ``contains`` and ``not contains``
both fail on an empty field, ``regex`` is anchored at the start only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netutils.ip import is_ip_within

from ledger.errors import ConfigurationError
from producers.config_model import FilterTable
from producers.errors import FilterEvaluationError

_Predicate = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class CompiledFilter:
    """One condition, ready to be asked for each row."""

    text: str
    path: tuple[str, ...]
    operation: str
    value: Any
    _predicate: _Predicate

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Whether the row passes.

        Raises:
            FilterEvaluationError: the operation has no answer for the row's value.
        """
        found = value_at(row, self.path)
        try:
            return bool(self._predicate(found, self.value))
        except (TypeError, ValueError) as exc:
            raise FilterEvaluationError(
                checked=f"the filter {self.text!r}",
                expected="a value that the operation can look at",
                found=f"a value of type {type(found).__name__}",
                next_action="exclude such rows with an earlier filter, or correct the source",
            ) from exc


def compile_filter(condition: FilterTable) -> CompiledFilter:
    """Check a condition's operation and value once, before any row is read.

    Raises:
        ConfigurationError: the value is none that the operation can use.
    """
    problem = _value_problem(condition)
    if problem is not None:
        raise ConfigurationError(
            checked=f"the filter {str(condition)!r}",
            expected=problem,
            found=f"a value of type {type(condition.value).__name__}",
            next_action="correct the filter's value",
        )
    return CompiledFilter(
        text=str(condition),
        path=tuple(condition.field.split(".")),
        operation=condition.operation,
        value=condition.value,
        _predicate=_PREDICATES[condition.operation],
    )


def value_at(row: Any, path: tuple[str, ...]) -> Any:
    """The value at a dotted path of the raw record; None where a step is missing or is no object."""
    current = row
    for step in path:
        if not isinstance(current, Mapping):
            return None
        current = current.get(step)
    return current


def _value_problem(condition: FilterTable) -> str | None:
    value = condition.value
    match condition.operation:
        case ">" | "<" | ">=" | "<=":
            return None if _is_whole_number(value) else "a whole number"
        case "in" | "not in":
            return None if isinstance(value, list | str | dict) else "a list"
        case "regex":
            return None if isinstance(value, str) and _is_pattern(value) else "a regular expression"
        case "is_ip_within":
            networks = value if isinstance(value, list) else [value]
            return None if networks and all(_is_network(item) for item in networks) else "a network or a list of them"
        case _:
            return None


def _is_whole_number(value: Any) -> bool:
    try:
        int(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_pattern(value: str) -> bool:
    try:
        re.compile(value)
    except re.error:
        return False
    return True


def _is_network(value: Any) -> bool:
    """Whether netutils can look into this network or range; every network lies within itself."""
    if not isinstance(value, str):
        return False
    try:
        return is_ip_within(value, value)
    except (TypeError, ValueError):
        return False


def _within(field: Any, value: Any) -> bool:
    return any(is_ip_within(field, network) for network in (value if isinstance(value, list) else [value]))


_PREDICATES: dict[str, _Predicate] = {
    "==": lambda field, value: field == value,
    "!=": lambda field, value: field != value,
    ">": lambda field, value: int(field) > int(value),
    "<": lambda field, value: int(field) < int(value),
    ">=": lambda field, value: int(field) >= int(value),
    "<=": lambda field, value: int(field) <= int(value),
    "in": lambda field, value: value and field in value,
    "not in": lambda field, value: field not in value,
    "contains": lambda field, value: field and value in field,
    "not contains": lambda field, value: field and value not in field,
    "is_empty": lambda field, _: field is None or not field,
    "is_not_empty": lambda field, _: field is not None and bool(field),
    "regex": lambda field, value: re.match(value, field),
    "is_ip_within": _within,
}
