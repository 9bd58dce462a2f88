"""Tokens: ``alt_<id>_<secret>``, shown once, kept as a digest.

The secret is 256 random bits, so a plain sha256 keeps it: there is nothing to guess that a slow hash would guard. The
id may be shown; it is how a token is listed, revoked, looked up and told apart in logs.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.store.tokens import StoredToken  # its driver would cost every command a tenth of a second

PREFIX = "alt_"
SHAPE = re.compile(r"alt_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
"""A fixed beginning, so that scanners of repositories and logs can find one that got there."""


class Role(StrEnum):
    """What the bearer of a token may ask for; each may what the one before it may."""

    READER = "reader"
    AUDITOR = "auditor"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token as it is made; ``text`` is never stored."""

    token_id: str
    text: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. ``token_id`` is None in local mode."""

    name: str
    role: Role
    token_id: str | None

    @property
    def actor(self) -> str:
        """The name under which orders are recorded."""
        return self.name if self.token_id is None else f"{self.name} (token {self.token_id})"


def without_tokens(text: str) -> str:
    """A text with every token cut down to the part that may be shown."""
    return SHAPE.sub(rf"{PREFIX}\1_…", text)


def new_token() -> NewToken:
    """A token that nobody has yet."""
    token_id = secrets.token_hex(8)
    text = f"{PREFIX}{token_id}_{secrets.token_urlsafe(32)}"
    return NewToken(token_id, text, digest(text))


def digest(text: str) -> bytes:
    """What is stored of a token."""
    return hashlib.sha256(text.encode()).digest()


def token_id_of(text: str) -> str | None:
    """The id in something that has the shape of a token."""
    found = SHAPE.fullmatch(text)
    return found[1] if found else None


def belongs(text: str, stored: StoredToken | None) -> bool:
    """Whether a token is the stored one and works; compared in a time that says nothing about where they differ."""
    known = bytes(32) if stored is None else stored.digest
    return hmac.compare_digest(digest(text), known) and stored is not None and stored.works
