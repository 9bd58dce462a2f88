"""All spellings of a secret in foreign error texts: quoted, escaped, or inside an encoded header."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote

_LEAST_ENCODED = 8
"""Characters of an encoded piece below which it could be anything."""


def spellings(secret: str) -> frozenset[str]:
    """The spellings that are looked for in any amount of text: plain, as JSON, percent-encoded, and in Base64.

    Base64 groups three bytes, so that a secret behind a user's name has three faces; the characters that it shares with
    its neighbours are left out.
    """
    return frozenset({secret, json.dumps(secret)[1:-1], quote(secret, safe="")} | _encoded(secret.encode()))


def letter_by_letter(secret: str) -> str:
    """A pattern for the secret, each of its letters written in any way, such as ``/``, ``%2F`` or ``&#47;``.

    Escapes of escapes are counted to a few, or a text of nothing but backslashes would be searched for minutes. Even so
    it takes its time: it is for the part of a text that is shown.
    """
    return "".join(map(_letter, secret))


def _letter(letter: str) -> str:
    code = ord(letter)
    digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in f"{code:02x}")
    ways = [
        rf"\\{{0,8}}{re.escape(letter)}",
        rf"%(?:25){{0,3}}{digits}",
        rf"\\{{1,8}}(?:u00|x){digits}",
        rf"&#(?:0{{0,6}}{code}|[xX]0{{0,6}}{digits});",
        re.escape(html.escape(letter)),
    ]
    return f"(?:{'|'.join(ways)})"


def _encoded(secret: bytes) -> set[str]:
    found = set()
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + secret).decode()
        piece = whole[-(-8 * shift // 6) : 8 * (shift + len(secret)) // 6]
        if len(piece) >= _LEAST_ENCODED:
            found |= {piece, piece.replace("+", "-").replace("/", "_")}
    return found
