"""Stored JSON read by an audit, which has to survive whatever somebody put there."""

from __future__ import annotations

import json
from typing import Any

from ledger.plan.canonical import canonical_json_bytes


def parsed(data: bytes) -> Any:
    """The value, or None where the bytes are no JSON."""
    try:
        return json.loads(data.decode())  # as text: from bytes it would look for other encodings first
    except (ValueError, RecursionError):
        return None


def parsed_object(data: bytes) -> dict[str, Any] | None:
    """The object, or None where the bytes are none or have no canonical form."""
    value = parsed(data)
    return value if isinstance(value, dict) and _encoded(value) is not None else None


def is_canonical(data: bytes) -> bool:
    """Whether the bytes are the one spelling of their value."""
    value = parsed(data)
    return value is not None and _encoded(value) == data


def _encoded(value: Any) -> bytes | None:
    try:
        return canonical_json_bytes(value)
    except (ValueError, RecursionError):
        return None
