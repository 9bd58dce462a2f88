"""Looks for a secret in text by undoing what could hide it; knows nothing of how the product looks for one."""

from __future__ import annotations

import base64
import html
import json
import re
from urllib.parse import unquote_plus

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{16,}")
_NUMBERED = re.compile(r"\\u([0-9a-fA-F]{4})")
_PART = 10


def leaks(text: str, secret: str) -> bool:
    """Whether ten neighbouring characters of the secret can be had from the text."""
    parts = [secret[start : start + _PART] for start in range(len(secret) - _PART + 1)]
    spellings = {text, *_unescaped(text), *_decoded(text), *_unquoted(text)}
    return any(part in spelling for spelling in spellings for part in parts)


def echoes(document: bytes, secret: str) -> bool:
    """Whether the whole secret stands in the document, as JSON writes text, or encoded as in a header."""
    text = document.decode("utf-8", "replace")
    return any(secret in spelling for spelling in {text, *_unescaped(text), *_decoded(text)})


def _unescaped(text: str) -> set[str]:
    if "\\" not in text:
        return set()
    plain = _NUMBERED.sub(lambda match: chr(int(match.group(1), 16)), text)
    return {plain, plain.replace("\\/", "/").replace('\\"', '"').replace("\\\\", "\\")}


def _unquoted(text: str) -> set[str]:
    return {unquote_plus(text), html.unescape(text)} if any(mark in text for mark in "%+&") else set()


def _decoded(text: str) -> set[str]:
    spellings = set()
    for run in _ENCODED.findall(text):
        whole = run.replace("-", "+").replace("_", "/")
        for start in range(4):
            piece = whole[start:] + "A" * (-len(whole[start:]) % 4)
            spellings.add(base64.b64decode(piece).decode("latin-1"))
    return spellings


def disguised(secret: str) -> list[str]:
    """The secret as servers, proxies and libraries write it into their errors."""
    basic = base64.b64encode(f"admin:{secret}".encode()).decode()
    return [
        secret,
        f"X-INFRAHUB-KEY: {secret}",
        f"Authorization: Bearer {secret}",
        f"Authorization: Basic {basic}",
        basic,
        f"https://user:{secret}@host/?token={secret}",
        "".join(f"%{ord(letter):02x}" if not letter.isalnum() else letter for letter in secret),
        json.dumps(secret)[1:-1],
        json.dumps({"key": secret}),
        html.escape(secret),
        "x" * 1990 + secret + "y" * 50,
    ]
