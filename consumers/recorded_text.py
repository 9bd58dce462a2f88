"""Text as the ledger can hold it: characters that cannot be stored are escaped, and what is too long is cut.

A cut says how long the text was and gives its sha256, so that it can be told from others and found again in a log of
the destination. Secrets are masked before a text comes here.
"""

from __future__ import annotations

import hashlib
import re

MAX_MESSAGE_CHARACTERS = 4096

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with what UTF-8 or PostgreSQL cannot store as ``\\uXXXX`` (FF19)."""
    return _UNSTORABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def cut(text: str, limit: int, *, whole: str | None = None) -> str:
    """The text, or its beginning with the length and the sha256 of the whole; ``limit`` counts only what is kept.

    ``whole`` is the text that is spoken of, where ``text`` itself is a beginning of it.
    """
    spoken_of = text if whole is None else whole
    if len(text) <= limit and whole is None:
        return text
    digest = hashlib.sha256(spoken_of.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:limit]}… ({len(spoken_of)} characters, sha256 {digest})"


def recordable(text: str) -> str:
    """Text for an event's body."""
    escaped = storable(text)
    return escaped if len(escaped) <= MAX_MESSAGE_CHARACTERS else cut(escaped, MAX_MESSAGE_CHARACTERS - _MARK)


_MARK = 128
"""Room for what a cut says of itself."""
