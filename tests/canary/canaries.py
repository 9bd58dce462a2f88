"""The planted secrets, and the bytes under which each of them could be found again."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

TOKEN = "CANARY-tok/9f27+b1c4=d0"
"""The destination's API token, from the environment, a file, or a sync's own configuration."""

USER_INFO = "CANARY-url-7d1e55aa"
QUERY = "CANARY-query-0b9c21ff"
PROXY = "CANARY-proxy-4e8d10bb"
OTHER_VARIABLE = "CANARY-variable-93af77cc"
DSN = "CANARY-dsn-2c6b88dd"
SOURCE_PASSWORD = "CANARY-source-51e2f0ee"
STORED_PASSWORD = "CANARY-stored-8a3d4c11"
MANIFEST = "CANARY-manifest-6f70b922"

PLANTED = {
    "token": TOKEN,
    "user info of an address": USER_INFO,
    "query of an address": QUERY,
    "proxy": PROXY,
    "other variable": OTHER_VARIABLE,
    "database password": DSN,
    "password in a source row": SOURCE_PASSWORD,
    "password at the destination": STORED_PASSWORD,
    "extra key of a manifest": MANIFEST,
}


@dataclass(frozen=True)
class Found:
    """A secret in a place where none may be."""

    secret: str
    place: str
    around: str


def search(places: Iterable[tuple[str, bytes]], secrets: dict[str, str]) -> list[Found]:
    """Every place in which one of the secrets stands, in whatever spelling."""
    needles = [(name, needle) for name, secret in secrets.items() for needle in spellings(secret)]
    found = []
    for place, data in places:
        for name, needle in needles:
            at = data.find(needle)
            if at >= 0:
                found.append(Found(name, place, repr(data[max(at - 60, 0) : at + 90])))
    return found


def spellings(secret: str) -> Iterator[bytes]:
    """The secret plain, in UTF-16, quoted, escaped, in hexadecimal digits, and in Base64 behind any other bytes.

    Of the plain one, twelve characters are enough: a cut must not leave a usable half.
    """
    yield secret[:12].encode()
    yield secret[-12:].encode()
    yield secret.encode("utf-16-le")
    yield secret.encode().hex().encode()
    yield quote(secret, safe="").encode()
    yield json.dumps(secret)[1:-1].replace("/", "\\/").encode()
    yield html.escape(secret).encode()
    for before in range(3):
        whole = base64.b64encode(b"?" * before + secret.encode()).decode()
        yield whole[4 if before else 0 : len(whole) // 4 * 4 - 4].encode()
