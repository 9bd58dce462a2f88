"""Strict decoding of JSON: one meaning for each document, and a named refusal for everything else (design 4.2).

:func:`decode_json` is for documents whose spelling is free (the manifest), :func:`decode_canonical_line` for lines
that must be canonical. The second takes a short way for ordinary lines: a line that re-encodes to itself cannot hold
duplicate keys, NaN, other number spellings or surrogates, so that only the few properties that survive re-encoding
(U+0000, depth, length of integers) are looked for in the bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from ledger.plan.canonical import MAX_INTEGER_DIGITS, canonical_json_text
from ledger.plan.errors import (
    ByteOrderMarkError,
    DuplicateJsonKeyError,
    IntegerTooLongError,
    InvalidUtf8Error,
    JsonDocumentError,
    LineTooLongError,
    LoneSurrogateError,
    MalformedJsonError,
    NestingTooDeepError,
    NonCanonicalLineError,
    NonFiniteNumberError,
    NullCharacterError,
    TooManyValuesError,
)
from ledger.plan.layout import REPLAN, shown

MAX_NESTING = 100
"""Levels of lists and objects in one document; decided by counting, before any parser recurses."""

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Largest record of a JSON Lines file, newline left out."""

MAX_VALUES = 500_000
"""Values in one document. Three bytes, ``[],``, cost a hundred in memory: unlimited, a small file is a large one."""

_BOM = b"\xef\xbb\xbf"
# Possessive, with an optional end, and with a look-behind: hostile bytes are scanned once, never once per start.
_STRUCTURE = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]|,', re.DOTALL)
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{%d}" % (MAX_INTEGER_DIGITS + 1))
_SURROGATE = re.compile("[\ud800-\udfff]")
_parse_text = json.JSONDecoder().raw_decode


def decode_json(data: bytes, *, what: str, any_values: bool = False) -> Any:
    """The value of one JSON document.

    Args:
        data: the whole document.
        what: how a message names it, such as ``plan/manifest.json``.
        any_values: NaN, infinities, lone surrogates and escaped U+0000 pass: the caller names them by their field.

    Raises:
        JsonDocumentError: one of its subclasses, naming the reason; never ``ValueError`` or ``RecursionError``.
    """
    text = _utf8_text(data, what)
    require_bounded(data, what)
    hooks = _Hooks(what)
    try:
        value = json.loads(
            text,
            object_pairs_hook=hooks.pairs,
            parse_int=hooks.integer if _LONG_NUMBER.search(data) else None,
            parse_float=float if any_values else hooks.number,
            parse_constant=float if any_values else hooks.constant,
        )
    except json.JSONDecodeError as exc:
        _refuse(MalformedJsonError, what, "one JSON value", _malformed(exc))
    if b"\\u" in data and not any_values:
        _require_storable_text(value, what)
    return value


def _malformed(exc: json.JSONDecodeError) -> str:
    """What a parser stumbled over, in words that do not change with the parser."""
    if not exc.doc.strip():
        return "nothing"
    reason = next((words for start, words in _MALFORMED.items() if exc.msg.startswith(start)), "something else")
    return f"{reason} at line {exc.lineno}, column {exc.colno}"


_MALFORMED = {
    "Expecting value": "no value where one belongs",
    "Expecting property name": "no key in double quotes where one belongs",
    "Illegal trailing comma": "a comma with nothing behind it",
    "Expecting ':'": "no colon behind a key",
    "Expecting ','": "neither a comma nor a closing bracket",
    "Extra data": "more behind the value",
    "Unterminated string": "a text that is not closed",
    "Invalid control character": "an unescaped control character in a text",
    "Invalid \\": "an escape that JSON does not have",
}
"""By how the messages of Python's parser begin; all of them, on 3.11 to 3.13."""


def decode_canonical_line(line: bytes, *, what: str) -> Any:
    """The value of one line, newline left out, whose bytes must be the canonical encoding of that value.

    Raises:
        JsonDocumentError: the line is refused as JSON.
        LineTooLongError: more than :data:`MAX_LINE_BYTES`.
        NonCanonicalLineError: the value's canonical encoding has other bytes.
    """
    if not _needs_care(line):
        try:
            text = line.decode()
            value, end = _parse_text(text)
            if end == len(text) and canonical_json_text(value) == text:
                return value
        except (ValueError, RecursionError):
            pass  # The slow way below finds the reason and names it.
    if len(line) > MAX_LINE_BYTES:
        raise line_too_long(what, f"{len(line)} bytes")
    value = decode_json(line, what=what)
    if canonical_json_text(value).encode() != line:
        raise NonCanonicalLineError(
            checked=what,
            expected="the canonical encoding: sorted keys, no blanks, one spelling of each number and text",
            found="other bytes for the same value",
            next_action=REPLAN,
        )
    return value


def line_too_long(what: str, found: str) -> LineTooLongError:
    """The refusal of a record that is larger than a reader has to accept."""
    return LineTooLongError(
        checked=what,
        expected=f"at most {MAX_LINE_BYTES} bytes",
        found=found,
        next_action="leave the oversized value out of the source or the mapping, and make a fresh plan",
    )


def _needs_care(line: bytes) -> bool:
    """Whether a property that re-encoding would not show may be present; cheap, and may err towards yes."""
    return (
        b"\\u0000" in line
        or line.count(b"[") + line.count(b"{") > MAX_NESTING
        or (len(line) > MAX_VALUES and line.count(b",") >= MAX_VALUES - MAX_NESTING)
        or (len(line) > MAX_INTEGER_DIGITS and (len(line) > MAX_LINE_BYTES or _LONG_NUMBER.search(line) is not None))
    )


def _utf8_text(data: bytes, what: str) -> str:
    if data.startswith(_BOM):
        _refuse(ByteOrderMarkError, what, "UTF-8 without a byte order mark", "a byte order mark")
    if b"\x00" in data:
        _refuse(NullCharacterError, what, "text without U+0000", f"a zero byte at offset {data.index(0)}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        _refuse(InvalidUtf8Error, what, "UTF-8", f"bytes that are not UTF-8 at offset {exc.start}")


def require_bounded(data: bytes, what: str) -> None:
    """Depth and number of values, counted before any parser makes objects of them.

    Raises:
        NestingTooDeepError: more than :data:`MAX_NESTING` levels.
        TooManyValuesError: more than :data:`MAX_VALUES`.
    """
    openings = data.count(b"[") + data.count(b"{")
    if openings <= MAX_NESTING and openings + data.count(b",") < MAX_VALUES:
        return
    depth, values = 0, 1
    for match in _STRUCTURE.finditer(data):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            values += 1
            if depth > MAX_NESTING:
                _refuse(NestingTooDeepError, what, f"at most {MAX_NESTING} levels of nesting", "more levels")
        elif token in (b"]", b"}"):
            depth -= 1
        elif token == b",":
            values += 1
        if values > MAX_VALUES:
            _refuse(TooManyValuesError, what, f"at most {MAX_VALUES:,} values", "more values")


def _require_storable_text(value: Any, what: str) -> None:
    """Escapes can spell what no byte of the document shows: U+0000 and halves of surrogate pairs."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, str):
            if "\x00" in item:
                _refuse(NullCharacterError, what, "text without U+0000", "an escaped U+0000")
            if _SURROGATE.search(item):
                _refuse(LoneSurrogateError, what, "text of whole characters", "an escaped lone surrogate")


class _Hooks:
    """What the parser asks while it reads one document."""

    def __init__(self, what: str) -> None:
        self._what = what

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        mapping = dict(pairs)
        if len(mapping) != len(pairs):
            twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
            _refuse(DuplicateJsonKeyError, self._what, "each key once in an object", f"the key {shown(twice)} twice")
        return mapping

    def integer(self, text: str) -> int:
        if len(text.lstrip("-")) > MAX_INTEGER_DIGITS:
            _refuse(IntegerTooLongError, self._what, f"integers of at most {MAX_INTEGER_DIGITS} digits", f"{len(text)}")
        return int(text)

    def number(self, text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            _refuse(NonFiniteNumberError, self._what, "finite numbers", shown(text))
        return value

    def constant(self, text: str) -> NoReturn:
        _refuse(NonFiniteNumberError, self._what, "finite numbers", text)


def _refuse(error: type[JsonDocumentError], what: str, expected: str, found: str) -> NoReturn:
    raise error(checked=what, expected=expected, found=found, next_action=REPLAN)
