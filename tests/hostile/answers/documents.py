"""JSON that nobody would send: right documents with something wrong in them, and text that is almost JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random
from typing import Any

from tests.hostile.answers.leaks import disguised

Odd = Callable[[Random], Any]

_SURROGATE = "lone \ud800 half"


def odd_value(random: Random, token: str) -> Any:
    """A value that stands nowhere in a right answer."""
    return random.choice(
        [
            None,
            True,
            False,
            0,
            1,
            -1,
            404.0,
            10**30,
            "",
            " ",
            "null",
            "true",
            "NODE_NOT_FOUND",
            "\x00",
            _SURROGATE,
            "\u202e\u200b\ufeff",
            "<script>",
            "x" * random.choice([200, 5000]),
            [],
            {},
            [None],
            [[]],
            {"": {}},
            {"id": None},
            nested(random.choice([3, 60])),
            random.choice(disguised(token)),
        ]
    )


def nested(levels: int) -> Any:
    document: Any = "deep"
    for level in range(levels):
        document = [document] if level % 2 else {"in": document}
    return document


def changed(random: Random, document: Any, token: str) -> Any:
    """The document with one part replaced, taken out, doubled, or put beside another."""
    places = list(_places(document))
    if not places:
        return odd_value(random, token)
    holder, key = random.choice(places)
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, holder[key])
        case 1 | 2:
            holder[key] = [holder[key]]
        case 3 if isinstance(holder, dict):
            holder[random.choice(["data", "errors", "id", "ok", "object", "extra", f"{key} "])] = odd_value(
                random, token
            )
        case 4 if isinstance(holder, dict) and len(holder) > 1:
            other = random.choice(sorted(holder))
            holder[key], holder[other] = holder[other], holder[key]
        case _:
            holder[key] = odd_value(random, token)
    return document


def _places(document: Any) -> Any:
    if isinstance(document, dict):
        inner: Any = list(document.items())
    elif isinstance(document, list):
        inner = list(enumerate(document))
    else:
        return
    for key, value in inner:
        yield document, key
        yield from _places(value)


def written(random: Random, document: Any) -> bytes:
    """The document as text, in one of the spellings that JSON allows."""
    text = json.dumps(
        document,
        ensure_ascii=random.random() < 0.8,
        indent=1 if random.random() < 0.02 else None,
        separators=random.choice([None, (",", ":")]),
    )
    return text.encode("utf-8", "surrogatepass")


def broken(random: Random, text: bytes) -> bytes:
    """Text with something in it that strict JSON has not, or that changes it by a few bytes."""
    at = random.randrange(len(text) + 1)
    match random.randrange(14):
        case 0:
            return text[:at]
        case 1:
            return text + random.choice([b"x", b"\x00", b"{}", text, b",", b" \n\t"])
        case 2:
            return b"\xef\xbb\xbf" + text
        case 3:
            return text.decode("utf-8", "replace").encode(random.choice(["utf-16", "utf-16-le", "utf-32"]))
        case 4:
            return text[:at] + random.choice([b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\x00"]) + text[at:]
        case 5 | 6:
            return _key_twice(random, text)
        case 7:
            return re.sub(rb"(?<=[:\[ ])(?:true|null|\d+)", lambda _: random.choice(_NO_NUMBERS), text, count=1)
        case 8:
            return b"[" * random.choice([50, 900, 100_000]) + text
        case 9:
            return text.replace(b'"', b"'", 2)
        case 10:
            return b")]}',\n" + text
        case 11:
            return _letters_as_numbers(random, text)
        case 12 if text:
            where = random.randrange(len(text))
            return text[:where] + bytes([random.randrange(256)]) + text[where + 1 :]
        case _:
            return random.choice(
                [b"", b" ", b"null", b"<!doctype html><title>Sign in</title>", b"0", b'"ok"', b"{", text]
            )


_NO_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5000, b"01", b"+1", b"1.", b"0x1"]


def _key_twice(random: Random, text: bytes) -> bytes:
    keys = list(re.finditer(rb'"([A-Za-z]\w*)" ?:', text))
    if not keys:
        return text
    key = random.choice(keys)
    value = random.choice([b"null", b"true", b"false", b"{}", b"[]", b'"x"'])
    return text[: key.start()] + key.group() + value + b"," + text[key.start() :]


def _letters_as_numbers(random: Random, text: bytes) -> bytes:
    def numbered(match: re.Match[bytes]) -> bytes:
        return b"\\u%04x" % match.group()[0] if random.random() < 0.3 else match.group()

    return re.sub(rb"(?<=[A-Za-z-])[A-Za-z0-9](?=[A-Za-z0-9-])", numbered, text)
