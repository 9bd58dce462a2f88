"""All the ways in which a secret may be written in somebody's error: quoted, escaped, or inside an encoded header."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import quote, quote_plus

_LEAST_ENCODED = 8
"""Characters of an encoded piece below which it could be anything."""

_PERCENT = re.compile("%[0-9A-F]{2}")


def spellings(secret: str) -> frozenset[str]:
    """The secret as it is, percent-encoded, escaped for JSON (once and twice), HTML and Python, and in Base64.

    Base64 groups three bytes, so that a secret behind a user's name has three faces; the characters that it shares with
    its neighbours are left out.
    """
    escaped = json.dumps(secret)[1:-1]
    plain = {
        secret,
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(escaped)[1:-1],
        html.escape(secret),
        html.escape(secret, quote=False),
        repr(secret)[1:-1],
    }
    lower = {_PERCENT.sub(lambda match: match.group().lower(), spelling) for spelling in plain}
    return frozenset(plain | lower | _encoded(secret.encode()))


def _encoded(secret: bytes) -> set[str]:
    found = set()
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + secret).decode()
        piece = whole[-(-8 * shift // 6) : 8 * (shift + len(secret)) // 6]
        if len(piece) >= _LEAST_ENCODED:
            found |= {piece, piece.replace("+", "-").replace("/", "_")}
    return found
