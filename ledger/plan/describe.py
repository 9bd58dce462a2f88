"""Words for objects and values: what errors and reviews print.

Two things are decided here, once. Text from a source is never printed raw: everything that a terminal would act on or
that a reader could not see (controls, bidirectional overrides, zero-width characters, line separators) is shown as an
escape, so that a value cannot paint over the review it stands in. And values of secret fields are replaced by
:data:`SENSITIVE` (G12).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from ledger.schema import DestinationSchema, Kind

SENSITIVE = "(sensitive)"
MAX_SHOWN = 120
"""Characters of one value that an error or a review line shows before it is cut, with the length said."""

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|secret|token|api_?key|private_?key|psk|pre_?shared_?key|credentials?)(?:$|_)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SecretFields:
    """Which fields must not be shown.

    With a schema the attribute's kind decides. Without one (a review reads files only), or for a kind that the schema
    does not have, the field's name decides: too much hidden is a nuisance, too little is a leak.
    """

    schema: DestinationSchema | None = None

    @classmethod
    def of(cls, kind: Kind, schema: DestinationSchema | None = None) -> SecretFields:
        """Secrets of one kind and of its schema; without a schema, peers of other kinds go by name."""
        return cls(DestinationSchema(kinds={**(schema.kinds if schema is not None else {}), kind.kind: kind}))

    def hides(self, kind: str, field: str) -> bool:
        """Whether the value of ``kind.field`` must be replaced by :data:`SENSITIVE`."""
        known = self.schema.kinds.get(kind) if self.schema is not None else None
        attribute = known.attributes.get(field) if known is not None else None
        return attribute.is_secret if attribute is not None else bool(_SECRET_NAME.search(field))


def is_reference(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a canonical value is a reference: exactly ``{"identity": ..., "peer_kind": ...}`` (A47)."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"identity", "peer_kind"}
        and isinstance(value["identity"], Mapping)
        and isinstance(value["peer_kind"], str)
    )


def visible(text: str) -> str:
    """The text with everything invisible or active as ``\\uXXXX``; letters, marks, signs and blanks stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in _INVISIBLE_CATEGORIES else char for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def value_text(value: Any, *, limit: int | None = MAX_SHOWN) -> str:
    """One line for one value, as JSON so that ``1``, ``"1"``, ``""`` and ``null`` stay four things."""
    if is_reference(value):
        return object_text(value["peer_kind"], value["identity"])
    if isinstance(value, list) and value and all(is_reference(item) for item in value):
        return "[" + ", ".join(value_text(item, limit=limit) for item in value) + "]"
    text = visible(json.dumps(value, ensure_ascii=False, sort_keys=True))
    if limit is not None and len(text) > limit:
        return f"{text[:limit]}… ({len(text):,} characters)"
    return text


def object_text(kind: str, identity: Mapping[str, Any], *, secrets: SecretFields | None = None) -> str:
    """``LocationRack(name="r1", site=LocationSite(name="dc1"))``: an object by kind and identity."""
    return f"{visible(kind)}({identity_text(kind, identity, secrets=secrets)})"


def identity_text(kind: str, identity: Mapping[str, Any], *, secrets: SecretFields | None = None) -> str:
    """``name="r1", site=LocationSite(name="dc1")``: the identity alone, sorted by field."""
    return ", ".join(
        f"{visible(name)}={component_text(kind, name, identity[name], secrets=secrets)}" for name in sorted(identity)
    )


def component_text(kind: str, field: str, value: Any, *, secrets: SecretFields | None = None) -> str:
    """The value of one field of an object, masked where it is secret; references recurse with their own kind."""
    secrets = secrets or SecretFields()
    if secrets.hides(kind, field):
        return SENSITIVE
    if is_reference(value):
        return object_text(value["peer_kind"], value["identity"], secrets=secrets)
    if isinstance(value, list) and value and all(is_reference(item) for item in value):
        return "[" + ", ".join(component_text(kind, field, item, secrets=secrets) for item in value) + "]"
    return value_text(value)
