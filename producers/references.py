"""References as source rows give them, before they are resolved.

``{"id": n}`` means the row of the peer's endpoint with that key; a plain text is the peer's unique id; a list holds
several. None means that the field has no value (A35), for either cardinality.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from producers.errors import RowShapeError


@dataclass(frozen=True, slots=True)
class LocalId:
    """A peer by its key in the source, as text: 1 and true stay two keys."""

    text: str


@dataclass(frozen=True, slots=True)
class UniqueId:
    """A peer by its unique id: its identity's parts joined by ``__``. It is looked up whole, never split (A48)."""

    text: str


PeerToken = LocalId | UniqueId


_ONE_REFERENCE = """{"id": ...} with the id of the peer's row, or the peer's identity as text, its parts joined by __"""


def parse_tokens(value: Any, *, many: bool, field: str) -> tuple[PeerToken, ...] | None:
    """What a reference value names; None where there is no value.

    Args:
        value: as the row has it.
        many: whether the relationship takes several peers.
        field: its name, for the error.

    Raises:
        RowShapeError: another shape, or a list for a relationship with one peer, or the reverse.
    """
    if value is None:
        return None
    if many != isinstance(value, list):
        raise _shape_error(field, "a list of references" if many else "one reference", value)
    items = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(_token(item, field) for item in items))


def constant_tokens(value: Any, *, many: bool, field: str) -> tuple[PeerToken, ...] | None:
    """The same for ``static`` with ``reference``, where a number may be the peer's key as well."""
    if isinstance(value, list):
        return parse_tokens([_key_text(item) for item in value], many=many, field=field)
    if many and value is not None:
        return parse_tokens([_key_text(value)], many=True, field=field)
    return parse_tokens(_key_text(value), many=many, field=field)


def _key_text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def local_id_text(value: Any) -> str | None:
    """The text under which a row's key is looked up; None where the value is no key."""
    return str(value) if isinstance(value, str | int | float) and value != "" else None


def _token(item: Any, field: str) -> PeerToken:
    if isinstance(item, str):
        return UniqueId(item)
    if isinstance(item, Mapping) and (text := local_id_text(item.get("id"))) is not None:
        return LocalId(text)
    raise _shape_error(field, _ONE_REFERENCE, item)


def _shape_error(field: str, expected: str, value: Any) -> RowShapeError:
    found = "an object without a usable id" if isinstance(value, Mapping) else f"a value of type {type(value).__name__}"
    return RowShapeError(
        checked=f"the reference {field}",
        expected=expected,
        found=found,
        next_action="correct the mapping of this field",
    )
