"""Makes foreign text fit to be stored: secrets masked, characters escaped that PostgreSQL or UTF-8 cannot hold, cut.

The order matters: masking comes before cutting, or a cut could leave half a secret that no longer matches (FF37).
Escaping is for recorded messages only; data with such characters is refused elsewhere (FF19).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from consumers.infrahub.spellings import letter_by_letter, spellings
from consumers.recorded_text import cut, storable

MASK = "[redacted]"
MAX_TEXT = 2000
"""Characters of one recorded message; a server that answers with a page of HTML must not fill the ledger."""

_LEAST_ECHO = 12
"""Characters of a secret from which on it is looked for in data: a shorter one may be an ordinary word."""

_WINDOW = 64 * 1024
"""Characters in which a credential is looked for by its place; far more than is kept, and still quick to search."""

_USER_INFO = re.compile(r"(?<=://)[^/\s@\"'<>]+@")
_HEADER = re.compile(
    r"(?i)\b(x-infrahub-key|authorization|proxy-authorization|cookie|set-cookie)(\W{1,6})[^\r\n,}\"']+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}")
_PARAMETER = re.compile(
    r"(?i)\b((?:api[_-]?)?(?:token|key)|access_token|refresh_token|password|passwd|secret|signature)=[^&\s\"'<>]+"
)


class Redactor:
    """Masks the given secrets, in every spelling of theirs, and what is a credential by its place."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = [secret for secret in secrets if secret]
        self._spellings = _longest_first(spelling for secret in known for spelling in spellings(secret))
        self._disguises = re.compile("|".join(map(letter_by_letter, known))) if known else None
        self._echoes = _longest_first(
            spelling for secret in known if len(secret) >= _LEAST_ECHO for spelling in spellings(secret)
        )

    def text(self, text: str, *, limit: int = MAX_TEXT) -> str:
        """``text`` masked, escaped and cut to ``limit`` characters; what is masked is not in a cut's digest either."""
        for spelling in self._spellings:
            text = text.replace(spelling, MASK)
        shown = text[:_WINDOW]
        if self._disguises is not None:
            shown = self._disguises.sub(MASK, shown)
        shown = _USER_INFO.sub(f"{MASK}@", shown)
        shown = _HEADER.sub(rf"\1\2{MASK}", shown)
        shown = _BEARER.sub(rf"\1\2{MASK}", shown)
        shown = _PARAMETER.sub(rf"\1={MASK}", shown)
        return cut(storable(shown), limit, whole=text if len(text) > _WINDOW else None)

    def holds_secret(self, text: str) -> bool:
        """Whether a known secret is in the text, in any spelling."""
        return self._disguises is not None and self._disguises.search(text) is not None

    def is_echoed_in(self, document: bytes) -> bool:
        """Whether a known secret is in a JSON document that is about to be used as data."""
        text = document.decode()
        if "\\u" in text:  # any letter may be written as its number; encoding again leaves one spelling
            text = json.dumps(json.loads(text), ensure_ascii=False)
        return any(spelling in text for spelling in self._echoes)


def _longest_first(found: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(found), key=lambda spelling: (-len(spelling), spelling)))
