"""The one encoding of everything that is hashed: plan lines, manifest, coverage, event bodies (A14 to A20).

UTF-8 without BOM, sorted keys, ``,`` and ``:`` without blanks, no ASCII escapes. What has no single spelling is
refused, so that equal bytes mean equal values and the reverse.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ledger.plan.errors import UnserializablePayloadValueError

Identity = dict[str, Any]
"""Attribute name to canonical value; a reference is ``{"identity": ..., "peer_kind": ...}``, to any depth (A47)."""


def canonical_value(value: Any, *, kind: str, field: str) -> Any:
    """The JSON value that stands for ``value``.

    Args:
        value: from a source row or a transform.
        kind: the object's kind, for the error.
        field: the field's name, for the error.

    Raises:
        UnserializablePayloadValueError: no canonical form; names kind, field and Python type (A20).
    """
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case str():
            return _text(value, kind, field)
        case float():
            if not math.isfinite(value):
                raise _refused(kind, field, value, "a finite number")
            return float(value)
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            if not value.is_finite():
                raise _refused(kind, field, value, "a finite number")
            return str(value)
        case list() | tuple():
            return [canonical_value(item, kind=kind, field=field) for item in value]
        case Mapping():
            return {
                _key(key, kind, field): canonical_value(item, kind=kind, field=field)
                for key, item in sorted(value.items(), key=lambda pair: _key(pair[0], kind, field))
            }
        case _:
            raise _refused(kind, field, value, "text, number, boolean, null, date, list or mapping")


def _text(value: str, kind: str, field: str) -> str:
    if "\x00" in value:
        raise _refused(kind, field, value, "text without U+0000")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(kind, field, value, "text without lone surrogates") from None
    return str(value)


def _key(key: Any, kind: str, field: str) -> str:
    if not isinstance(key, str):
        raise _refused(kind, field, key, "mapping keys that are text")
    return _text(key, kind, field)


def _refused(kind: str, field: str, value: Any, expected: str) -> UnserializablePayloadValueError:
    return UnserializablePayloadValueError(
        checked=f"the value of {kind}.{field}",
        expected=expected,
        found=f"a value of type {type(value).__name__} without a canonical form",
        next_action="change the source or the mapping so that the field has a value of a plain type",
    )


def canonical_json_bytes(value: Any) -> bytes:
    """Encode a value that is already canonical; a NaN or a lone surrogate raises ``ValueError``."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def canonical_identity(identity: Mapping[str, Any], *, kind: str) -> Identity:
    """An identity with canonical values and sorted keys; the form that ids and the resolver key on (A26, P70)."""
    return {
        name: canonical_value(identity[name], kind=kind, field=name)
        for name in sorted(_key(key, kind, "identity") for key in identity)
    }


def identity_bytes(kind: str, identity: Mapping[str, Any]) -> bytes:
    """Canonical bytes of ``[kind, identity]``: equal exactly for one object of one kind."""
    return canonical_json_bytes([kind, canonical_identity(identity, kind=kind)])


def object_key(kind: str, identity: Mapping[str, Any]) -> bytes:
    """32 bytes (sha256 of :func:`identity_bytes`) by which the ledger's tables find an object."""
    return hashlib.sha256(identity_bytes(kind, identity)).digest()


def operation_id(action: str, kind: str, identity: Mapping[str, Any]) -> str:
    """``op_`` and 16 hexadecimal digits over action, kind and identity; the payload is left out (A53, A54)."""
    digest = hashlib.sha256(canonical_json_bytes([action, kind, canonical_identity(identity, kind=kind)])).hexdigest()
    return f"op_{digest[:16]}"
