"""Makes foreign text fit to be stored: secrets masked, characters escaped that PostgreSQL or UTF-8 cannot hold, cut.

The order matters: masking comes before cutting, or a cut could leave half a secret that no longer matches (FF37).
Escaping is for recorded messages only; data with such characters is refused elsewhere (FF19).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

MASK = "[redacted]"
MAX_TEXT = 4000
"""Characters of one recorded message; a server that answers with a page of HTML must not fill the ledger."""

_USER_INFO = re.compile(r"(?<=://)[^/\s@\"'<>]+@")
_HEADER = re.compile(
    r"(?i)\b(x-infrahub-key|authorization|proxy-authorization|cookie|set-cookie)(\W{1,6})[^\r\n,}\"']+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}")
_PARAMETER = re.compile(
    r"(?i)\b((?:api[_-]?)?(?:token|key)|access_token|refresh_token|password|passwd|secret|signature)=[^&\s\"'<>]+"
)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Redactor:
    """Masks the given secrets, as they are and percent-encoded, and what is a credential by its place."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        spellings = {spelling for secret in secrets if secret for spelling in (secret, quote(secret, safe=""))}
        longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
        self._secrets = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str, *, limit: int = MAX_TEXT) -> str:
        """``text`` masked, escaped and cut to ``limit`` characters."""
        if self._secrets is not None:
            text = self._secrets.sub(MASK, text)
        text = _USER_INFO.sub(f"{MASK}@", text)
        text = _HEADER.sub(rf"\1\2{MASK}", text)
        text = _BEARER.sub(rf"\1\2{MASK}", text)
        text = _PARAMETER.sub(rf"\1={MASK}", text)
        text = _UNSTORABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
        return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
