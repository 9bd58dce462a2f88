"""JSON as the standard means it: one reading or none."""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST = 100


def read_strictly(body: bytes) -> Any:
    """The document, or None where it is none: UTF-8, no key twice, finite numbers, at most 100 levels."""
    try:
        return _shallow(json.loads(str(body, "utf-8"), object_pairs_hook=_once, parse_constant=_no, parse_float=_real))
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise ValueError("twice")
    return dict(pairs)


def _no(text: str) -> Any:
    raise ValueError(text)


def _real(text: str) -> float:
    if math.isinf(float(text)):
        raise ValueError(text)
    return float(text)


def _shallow(document: Any) -> Any:
    def depth(item: Any) -> int:
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    if depth(document) > DEEPEST:
        raise ValueError("too deep")
    return document
