"""Words for objects and values: what errors and reviews print.

Text from a source is never printed raw and never without end (:mod:`ledger.printable`): a plan may be made by anybody,
and names of kinds and fields are as much its maker's as values are. Values of secret fields are replaced by
:data:`SENSITIVE` (G12).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from ledger.printable import visible, words
from ledger.schema import DestinationSchema, Kind

SENSITIVE = "(sensitive)"
MAX_SHOWN = 120
"""Characters of one value that an error or a review line shows before it is cut, with the length said."""

MAX_NAME = 300
"""Characters of the name of a kind or field, of an id or of a reason."""

MAX_PARTS = 1_000
"""Parts of an identity, and peers of a list, that one line shows; the number of omitted ones is reported."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,299}")
_SECRET_NAME = re.compile(
    r"passw(?:or)?d|passphrase|passcode|secret|credential"  # wherever it is in a name
    r"|(?:^|[_-])(?:pass|pwd|pin|otp|psk|tokens?|bearer|communit(?:y|ies)|cookie)(?:$|[_\-\d])"
    r"|(?:^|[_-])(?:api|private|pre_?shared|shared|auth|authentication|encryption|privacy|signing|session|access"
    r"|radius|tacacs|wpa|wep|md5|bgp|ospf|hmac|license|licence)[_-]?keys?(?:$|[_\-\d])",
    re.IGNORECASE,
)
"""Names of fields that hold a secret where no schema can be asked: wide, because too much hidden is only a nuisance."""

_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where ``adminPassword`` would have an underscore."""


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
        return attribute.is_secret if attribute is not None else bool(_SECRET_NAME.search(_HUMPS.sub("_", field)))


def is_reference(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Whether a canonical value is a reference: exactly ``{"identity": ..., "peer_kind": ...}`` (A47)."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"identity", "peer_kind"}
        and isinstance(value["identity"], Mapping)
        and isinstance(value["peer_kind"], str)
    )


def name_text(text: str) -> str:
    """The name of a kind or field, an id, a reason: on one line, of bounded length."""
    return words(text, MAX_NAME)


def quoted_name(text: str) -> str:
    """A name in quotes, where it has the form of a name; else what else it is.

    Where a plan has something else in the place of a name, nothing tells whether that may be shown (G12).
    """
    return repr(text) if _NAME.fullmatch(text) else f"a text of {len(text):,} characters that is no name"


def value_text(value: Any, *, limit: int | None = MAX_SHOWN) -> str:
    """One line for one value, as JSON so that ``1``, ``"1"``, ``""`` and ``null`` stay four things."""
    if is_reference(value):
        return object_text(value["peer_kind"], value["identity"])
    if isinstance(value, list) and value and all(is_reference(item) for item in value):
        return _list_text([value_text(item, limit=limit) for item in value[:MAX_PARTS]], len(value))
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if limit is not None and len(text) > limit:
        return f"{visible(text[:limit])}… ({len(text):,} characters)"
    return visible(text)


def object_text(kind: str, identity: Mapping[str, Any], *, secrets: SecretFields | None = None) -> str:
    """``LocationRack(name="r1", site=LocationSite(name="dc1"))``: an object by kind and identity."""
    return f"{name_text(kind)}({identity_text(kind, identity, secrets=secrets)})"


def identity_text(kind: str, identity: Mapping[str, Any], *, secrets: SecretFields | None = None) -> str:
    """``name="r1", site=LocationSite(name="dc1")``: the identity alone, sorted by field."""
    names = sorted(identity)
    parts = [
        f"{name_text(name)}={component_text(kind, name, identity[name], secrets=secrets)}" for name in names[:MAX_PARTS]
    ]
    return ", ".join(parts) + _rest(len(names))


def component_text(kind: str, field: str, value: Any, *, secrets: SecretFields | None = None) -> str:
    """The value of one field of an object, masked where it is secret; references recurse with their own kind."""
    secrets = secrets or SecretFields()
    if secrets.hides(kind, field):
        return SENSITIVE
    if is_reference(value):
        return object_text(value["peer_kind"], value["identity"], secrets=secrets)
    if isinstance(value, list) and value and all(is_reference(item) for item in value):
        parts = [component_text(kind, field, item, secrets=secrets) for item in value[:MAX_PARTS]]
        return _list_text(parts, len(value))
    return value_text(value)


def _list_text(parts: list[str], total: int) -> str:
    return f"[{', '.join(parts)}{_rest(total)}]"


def _rest(total: int) -> str:
    return f", … and {total - MAX_PARTS:,} more" if total > MAX_PARTS else ""
