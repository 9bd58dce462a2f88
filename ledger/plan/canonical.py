"""The one encoding of everything that is hashed: plan lines, manifest, coverage, event bodies (A14 to A20).

UTF-8 without BOM, sorted keys, ``,`` and ``:`` without blanks, no ASCII escapes. What has no single spelling is
refused, so that equal bytes mean equal values and the reverse. Two rules are ours: a time keeps the zone it came
with (one instant in two zones is two values, and a time without a zone gets none), and nesting and integers are
bounded by fixed numbers, so that what one process writes every other process can read.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from ledger.plan.errors import UnserializablePayloadValueError

Identity = dict[str, Any]
"""Attribute name to canonical value; a reference is ``{"identity": ..., "peer_kind": ...}``, to any depth (A47)."""

MAX_VALUE_NESTING = 64
"""Levels of lists and mappings in one value. A record adds at most five of its own, see ``decode.MAX_NESTING``."""

MAX_INTEGER_DIGITS = 640
"""Decimal digits of an integer: the most that every setting of PYTHONINTMAXSTRDIGITS can still convert to text."""

_INTEGER_LIMIT = 10**MAX_INTEGER_DIGITS
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _made_once() -> Callable[[Any], str]:
    """What :meth:`json.JSONEncoder.encode` does for lists and mappings, without its preparation for each call.

    The standard encoder makes its C part again each time, which costs more than encoding a short record, and planning
    encodes ten for each row. Made here with the very arguments that it uses; where an interpreter has no such part, or
    one that takes other arguments, the standard way is taken.
    """
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _ENCODER.encode
    try:
        encode = make(None, _ENCODER.default, json.encoder.encode_basestring, None, ":", ",", True, False, False)
        if "".join(encode({"b": [1.5, None], "a": "é"}, 0)) != '{"a":"é","b":[1.5,null]}':
            return _ENCODER.encode
    except TypeError:
        return _ENCODER.encode
    join = "".join
    return lambda value: join(encode(value, 0))


_encode = _made_once()
_quoted = json.encoder.encode_basestring  # what the encoder calls for a text that keeps what is not ASCII
_WORDS = {None: "null", True: "true", False: "false"}


def is_plain(text: str) -> bool:
    """Whether a text certainly is canonical, and one that every store can hold."""
    return text.isascii() and "\x00" not in text


def canonical_value(value: Any, *, kind: str, field: str) -> Any:
    """The JSON value that represents ``value``.

    Args:
        value: from a source row or a transform.
        kind: the object's kind, for the error.
        field: the field's name, for the error.

    Raises:
        UnserializablePayloadValueError: no canonical form; names kind, field and Python type (A20).
    """
    return _canonical(value, kind, field, MAX_VALUE_NESTING)


def _canonical(value: Any, kind: str, field: str, levels: int) -> Any:
    """The types that nearly every value has come first, without the search of a pattern match."""
    exact = type(value)
    if exact is str:
        return value if value.isascii() and "\x00" not in value else _text(value, kind, field)
    if value is None or exact is bool:
        return value
    if exact is dict:
        return _mapping(value, kind, field, levels)
    match value:
        case int():
            if not -_INTEGER_LIMIT < value < _INTEGER_LIMIT:
                raise _refused(kind, field, value, f"an integer of at most {MAX_INTEGER_DIGITS} digits")
            return int(value)
        case str():
            return _text(value, kind, field)
        case float():
            return float(_finite(value, kind, field))
        case Decimal():
            return str(_finite(value, kind, field))
        case datetime() | date():
            return value.isoformat()
        case list() | tuple():
            inner = _descend(value, kind, field, levels)
            return [_canonical(item, kind, field, inner) for item in value]
        case Mapping():
            return _mapping(value, kind, field, levels)
        case _:
            raise _refused(kind, field, value, "text, number, boolean, null, date, list or mapping")


def _mapping(value: Mapping[Any, Any], kind: str, field: str, levels: int) -> dict[str, Any]:
    inner = _descend(value, kind, field, levels)
    texts = {_key(key, kind, field): item for key, item in value.items()}
    return {key: _canonical(texts[key], kind, field, inner) for key in sorted(texts)}


def _finite(value: float | Decimal, kind: str, field: str) -> float | Decimal:
    finite = value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)
    if not finite:
        raise _refused(kind, field, value, "a finite number")
    return value


def _descend(value: Any, kind: str, field: str, levels: int) -> int:
    if levels == 0:
        raise _refused(kind, field, value, f"at most {MAX_VALUE_NESTING} levels of lists and mappings")
    return levels - 1


def _text(value: str, kind: str, field: str) -> str:
    if "\x00" in value:
        raise _refused(kind, field, value, "text without U+0000")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise _refused(kind, field, value, "text without lone surrogates") from None
    # A subclass (an enumeration member, markup) may override __str__; its content is what JSON would write.
    return str.__str__(value)


def _key(key: Any, kind: str, field: str) -> str:
    if type(key) is str and key.isascii() and "\x00" not in key:
        return key
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


def canonical_json_text(value: Any) -> str:
    """Encode a value that is already canonical; the text of :func:`canonical_json_bytes`."""
    if isinstance(value, str):
        return _quoted(value)
    if value is None or value is True or value is False:
        return _WORDS[value]
    if type(value) is int:
        return str(value)
    return _encode(value)


def canonical_json_bytes(value: Any) -> bytes:
    """Encode a value that is already canonical.

    Raises:
        ValueError: a NaN, an infinity or a lone surrogate.
        TypeError: a type that JSON has not; there is no fallback that would turn it into text (A20).
    """
    return canonical_json_text(value).encode("utf-8")


def same_bytes(one: Any, other: Any) -> bool:
    """Whether two canonical values have the same canonical bytes: 1, 1.0 and true are three values (FF16)."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_bytes(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_bytes, one, other))
    # A float has two zeros, which are equal and are written differently.
    return bool(one == other) and (not isinstance(one, float) or math.copysign(1, one) == math.copysign(1, other))


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
    return canonical_operation_id(action, kind, canonical_identity(identity, kind=kind))


def canonical_operation_id(action: str, kind: str, identity: Identity) -> str:
    """:func:`operation_id` of an identity whose values are canonical already."""
    digest = hashlib.sha256(canonical_json_bytes([action, kind, identity])).hexdigest()
    return f"op_{digest[:16]}"
