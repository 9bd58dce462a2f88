"""The scalar types of Infrahub's GraphQL that GraphQL itself does not have."""

from __future__ import annotations

from typing import Any

from graphql import (
    BooleanValueNode,
    FloatValueNode,
    GraphQLScalarType,
    IntValueNode,
    ListValueNode,
    ObjectValueNode,
    StringValueNode,
    Undefined,
    ValueNode,
)

_MAX_INT = 2**31 - 1


def _lenient_whole_number(value: Any) -> Any:
    """Variables are coerced like ``int(...)`` does: "5", "5.7", 5.7 and true are whole numbers to the server."""
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return Undefined


def _strict_whole_number(node: ValueNode, _variables: dict[str, Any] | None = None) -> Any:
    return int(node.value) if isinstance(node, IntValueNode) else Undefined


def _literal(node: ValueNode, variables: dict[str, Any] | None = None) -> Any:
    """Any literal; a whole number above 32 bit inside one is silently null, as on the server."""
    if isinstance(node, StringValueNode | BooleanValueNode):
        return node.value
    if isinstance(node, IntValueNode):
        number = int(node.value)
        return number if -_MAX_INT - 1 <= number <= _MAX_INT else None
    if isinstance(node, FloatValueNode):
        return float(node.value)
    if isinstance(node, ListValueNode):
        return [_literal(item, variables) for item in node.values]
    if isinstance(node, ObjectValueNode):
        return {item.name.value: _literal(item.value, variables) for item in node.fields}
    return None


def _unchanged(value: Any) -> Any:
    return value


BIG_INT = GraphQLScalarType(
    "BigInt", serialize=_unchanged, parse_value=_lenient_whole_number, parse_literal=_strict_whole_number
)
GENERIC_SCALAR = GraphQLScalarType(
    "GenericScalar", serialize=_unchanged, parse_value=_unchanged, parse_literal=_literal
)
DATE_TIME = GraphQLScalarType("DateTime", serialize=_unchanged, parse_value=_unchanged)
