"""What a write says of attributes, checked and worked out before anything changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from consumers.infrahub.sandbox.attribute_types import attribute_family
from consumers.infrahub.sandbox.errors import MutationRefusedError, PlainServerError
from consumers.infrahub.sandbox.model import KindModel
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.values import NULL_TEXT, ValueRefusedError, stored_value
from ledger.schema import Attribute


@dataclass(slots=True)
class Draft:
    """The checked content of one write. ``defaults`` names what goes back to, or stays on, its default.

    A peer that is named twice is in ``peers`` twice: the server makes two edges to it.
    """

    values: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, bool] = field(default_factory=dict)
    peers: dict[str, list[str]] = field(default_factory=dict)


def draft_attribute(
    draft: Draft, kind: KindModel, name: str, raw: Mapping[str, Any] | None, *, current: Node | None
) -> None:
    """Draft one attribute of a write; null for the whole of it keeps what is there.

    Args:
        draft: takes the value, and whether it is the default.
        kind: of the object.
        name: of the attribute.
        raw: what the mutation says of it.
        current: the object; None on a create.

    Raises:
        ValueRefusedError: the server's reason, which belongs to the field.
        MutationRefusedError: the server fails without naming the field.
    """
    attribute = kind.attributes[name]
    if raw is None:
        if current is None and not attribute.optional:
            raise ValueRefusedError(f"A value must be provided for {name}")
        return
    if raw.get("from_pool") is not None:
        raise ValueRefusedError(f"The pool requested {raw['from_pool']} was not found.", part="from_pool")
    value, is_default = _created(attribute, raw) if current is None else _changed(attribute, raw, current)
    draft.values[name], draft.defaults[name] = value, is_default


def _created(attribute: Attribute, raw: Mapping[str, Any]) -> tuple[Any, bool]:
    """The server believes the client's word about what is a default, except where it fills one in."""
    if raw.get("value") is None and attribute.default is not None:
        return attribute.default, True
    return stored_value(attribute, raw.get("value"), creating=True), bool(raw.get("is_default"))


def _changed(attribute: Attribute, raw: Mapping[str, Any], current: Node) -> tuple[Any, bool]:
    """What is there counts as it reads, a null under a default as the default; equality is Python's, 1 is true.

    To name ``is_default`` at all, even with false, resets what is not on its default.
    """
    value, is_default = current.read(attribute.name), current.is_default(attribute.name)
    if "value" in raw:
        wanted = stored_value(attribute, raw["value"], creating=False)
        if wanted != value:
            value = wanted
    if "is_default" in raw and not is_default:
        is_default = True
        if "value" not in raw:
            value = attribute.default
    if value is None and not attribute.optional:
        raise ValueRefusedError(f"A value must be provided for {attribute.name}")
    return value, is_default and value == attribute.default


def differs(left: Any, right: Any) -> bool:
    """Python's equality, as at the server: true is 1, and null is the text that stands for it."""
    return bool((None if left == NULL_TEXT else left) != (None if right == NULL_TEXT else right))


def trip_over_names(kind: KindModel, data: Mapping[str, Any]) -> None:
    """An attribute named like a method of the server's input object stands in that method's way.

    Raises:
        MutationRefusedError: the kind has one; its objects can be created and never updated.
    """
    for name in ("keys", "items"):
        attribute = kind.attributes.get(name)
        if attribute is not None:
            given = attribute_family(attribute.kind).update.name if data.get(name) is not None else "NoneType"
            raise MutationRefusedError(f"'{given}' object is not callable")


def trip_at_once(kind: KindModel) -> None:
    """The same for the one method without which the server reads no input at all.

    Raises:
        PlainServerError: the kind has an attribute of this name.
    """
    if "get" in kind.attributes:
        raise PlainServerError
