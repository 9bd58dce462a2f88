"""Text that is safe on a terminal: control and invisible characters are escaped, and its length is limited.

Decided here, once, for refusals and reviews alike. Text of a source, a file or a destination is never printed raw:
what a terminal would act on or a reader could not see (controls, bidirectional overrides, zero-width characters, line
separators) is shown as an escape, so that a value cannot paint over the words it is in.
"""

from __future__ import annotations

import re
import unicodedata

MAX_WORDS = 8_000
"""Maximum length of one part of a refusal; longer text is cut, and its length is shown."""

_MARK = 40
"""Room for what a cut says of itself; where it would take more than half of the room, a cut says no more than "…"."""

_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_USER_INFO = re.compile(r"://[^/?#\s]*@")
_BEHIND_THE_PATH = re.compile(r"[?#](?!query-sha256=[0-9a-f]{64}(?![0-9A-Za-z&=%]))")
_CLOSING = "'\"`,;:.)]}>"
"""What follows an address and is not part of it: quotation marks, brackets, the end of a sentence."""
_BEYOND_ASCII = re.compile("[\x7f-\U0010ffff]")


def visible(text: str) -> str:
    """The text with everything invisible or active as ``\\uXXXX``; letters, marks, signs and blanks stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(char) if unicodedata.category(char) in _INVISIBLE_CATEGORIES else char for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def words(text: str, limit: int = MAX_WORDS) -> str:
    """One part of a refusal or one name in a review: :func:`visible`, and of at most ``limit`` characters."""
    if len(text) <= limit:
        shown = visible(text)
        if len(shown) <= limit:
            return shown
    if limit < 2 * _MARK:
        return f"{visible(text[:limit])[: limit - 1]}…"
    kept = limit - _MARK
    return f"{visible(text[:kept])[:kept]}… ({len(text):,} characters)"


def refusal_words(text: str) -> str:
    """:func:`words` of a refusal, without user info, query and fragment of any URL in it (G12).

    A refusal quotes what it found in the wrong place, and what is there is anybody's: an address with a password
    where a checksum belongs is still an address with a password, and one with ``?token=`` tells a token.
    """
    if "://" in text:
        text = re.sub(r"\S+", _without_query, _USER_INFO.sub("://…@", text))
    return words(text)


def _without_query(match: re.Match[str]) -> str:
    """A run of characters; where an address is in it, up to its query or fragment that is no fingerprint."""
    run = match.group()
    address = run.find("://")
    query = None if address < 0 else _BEHIND_THE_PATH.search(run, address)
    if query is None:
        return run
    behind = run[query.end() :]
    told = behind.rstrip(_CLOSING)
    return f"{run[: query.end()]}…{behind[len(told) :]}" if told else run


def visible_json(text: str) -> str:
    """A JSON document that says the same and holds nothing active or invisible: such characters become escapes.

    JSON itself escapes only what stands before the blank; U+007F to U+009F and the bidirectional overrides are text
    to it, and control sequences to a terminal.
    """
    return text if text.isascii() and "\x7f" not in text else _BEYOND_ASCII.sub(_json_escaped, text)


def _json_escaped(match: re.Match[str]) -> str:
    char = match.group()
    if unicodedata.category(char) not in _INVISIBLE_CATEGORIES:
        return char
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
