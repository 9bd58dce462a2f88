"""Draws answers: mostly right ones that were spoilt, so that every row of the table is reached and every edge of it."""

from __future__ import annotations

import copy
import gzip
import json
import zlib
from random import Random
from typing import Any

import httpx

from tests.hostile.answers.documents import broken, changed, nested, odd_value, written
from tests.hostile.answers.leaks import disguised, leaks
from tests.hostile.answers.oracle import Form
from tests.hostile.answers.served import Served

OTHER_ID = "18ec9baa-2624-4515-e315-0000000000ff"
_CODES = [
    "NODE_NOT_FOUND",
    "ATTRIBUTE_REQUIRED",
    "ATTRIBUTE_INVALID_TYPE",
    "ATTRIBUTE_CONSTRAINT_VIOLATION",
    "PERMISSION_DENIED",
    "AUTHENTICATION_REQUIRED",
    "TOKEN_EXPIRED",
    "BRANCH_NOT_FOUND",
    "BRANCH_NEEDS_REBASE",
    "BRANCH_ALREADY_MERGED",
    "MERGE_IN_PROGRESS",
    "MERGE_RECOVERY_REQUIRED",
    "SCHEMA_NOT_FOUND",
    "UNDEFINED_ERROR",
    "SOMETHING_NEW",
]
_STATUSES = [100, 101, 103, 200, 201, 202, 204, 206, 301, 302, 304, 307, 400, 401, 403, 404, 408, 409, 418, 422, 423]
_STATUSES += [429, 429, 429, 451, 500, 500, 501, 502, 503, 504, 511, 599, 600, 999, 0]

_UNSENT = [httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout]
_LOST = [
    httpx.ReadTimeout,
    httpx.WriteTimeout,
    httpx.ReadError,
    httpx.WriteError,
    httpx.CloseError,
    httpx.RemoteProtocolError,
    httpx.LocalProtocolError,
    httpx.ProxyError,
    httpx.DecodingError,
]
_HEADERS = [
    (b"content-type", b"text/html; charset=utf-16"),
    (b"content-type", b"application/json; charset=\xff"),
    (b"content-length", b"7"),
    (b"content-length", b"-1"),
    (b"transfer-encoding", b"chunked"),
    (b"retry-after", b"99999999999999999999"),
    (b"retry-after", b"Wed, 21 Oct 2099 07:28:00 GMT"),
    (b"retry-after", "٣".encode()),
    (b"location", b"http://elsewhere.invalid/"),
    (b"set-cookie", b"session=1; path=/"),
    (b"x-infrahub-admission", b"shed"),
    (b"x-infrahub-admission", b" SHED "),
    (b"x-infrahub-admission", b"shed, shed"),
    (b"x-huge", b"h" * 60_000),
    (b"x-odd", bytes(range(0x80, 0x100))),
]


def an_answer(random: Random, form: Form, token: str) -> Served:
    """One answer to one write."""
    drawn = random.random()
    if drawn < 0.08:
        return _no_answer(random, token)
    if drawn < 0.16:
        return _by_status(random, form, token)
    if drawn < 0.165:
        return _beyond_measure(random)
    if drawn < 0.175:
        return whole("deep", json.dumps({"data": {form.field: nested(random.choice([150, 800]))}}).encode())
    name, document = a_document(random, form, token)
    for _ in range(random.choice([0, 0, 1, 1, 1, 2, 3])):
        document, name = changed(random, document, token), f"{name}, changed"
    text = written(random, document)
    if random.random() < 0.25 and not leaks(
        text.decode("utf-8", "replace"), token
    ):  # half a secret in half an answer is beyond anybody's help
        text, name = broken(random, text), f"{name}, broken"
    return on_the_wire(random, whole(name, text))


def whole(name: str, text: bytes) -> Served:
    """An answer that comes as it is."""
    return Served(name, chunks=(text,), truth=text)


def a_document(random: Random, form: Form, token: str) -> tuple[str, Any]:
    """A right answer of some kind: a confirmation, a stale id, an id in use, another refusal, or nothing."""
    done = {"ok": True, "object": {"id": form.node_id or OTHER_ID}}
    match random.randrange(9):
        case 0 | 1:
            return "confirmation", {"data": {form.field: done}}
        case 2:
            return "confirmation of another", {"data": {form.field: {"ok": True, "object": {"id": OTHER_ID}}}}
        case 3 | 4:
            return "stale id", {"data": {form.field: None}, "errors": [stale(form, form.node_id or OTHER_ID)]}
        case 5:
            return "missing peer", {"data": {form.field: None}, "errors": [stale(form, OTHER_ID)]}
        case 6:
            return "id in use", {"data": {form.field: None}, "errors": [in_use(form, form.node_id or OTHER_ID)]}
        case 7:
            errors = [_any_error(random, form, token) for _ in range(random.choice([1, 1, 2, 30]))]
            data = random.choice([None, {form.field: None}, {form.field: done}, [done], {}, {"Other": done}])
            return "errors", {"data": copy.deepcopy(data), "errors": errors}
        case _:
            odd: Any = random.choice([[], None, "text", ["text", token], {"message": token}, 7, [[]]])
            return "odd errors", {"data": {form.field: done}, "errors": odd}


def stale(form: Form, node_id: str) -> dict[str, Any]:
    """The destination's own not-found."""
    kind = form.field.removesuffix("Upsert")
    return {
        "message": f"Unable to find the node {node_id} / {kind} in the database.",
        "locations": [{"line": 1, "column": 42}],
        "path": [form.field],
        "extensions": {
            "code": "NODE_NOT_FOUND",
            "http_status": 404,
            "data": {"node_kind": kind, "identifier": node_id},
        },
    }


def in_use(form: Form, node_id: str) -> dict[str, Any]:
    """The destination's word that an id was used before."""
    about = {"field_name": "id", "constraint": f"{node_id} is already in use", "detail": None}
    extensions = {"code": "ATTRIBUTE_CONSTRAINT_VIOLATION", "http_status": 422, "data": about}
    return {"message": f"{node_id} is already in use at id", "path": [form.field], "extensions": extensions}


def _any_error(random: Random, form: Form, token: str) -> Any:
    message = random.choice(
        [
            "Failed to read from defunct connection IPv4Address(...)",
            "Violates uniqueness constraint 'name'",
            'Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: ' + random.choice(disguised(token)),
            "nul \x00 and half \ud800 a pair",
            "m" * random.choice([10, 3990, 100_000]) + token,
            odd_value(random, token),
        ]
    )
    return {
        "message": message,
        "path": random.choice([[form.field], [form.field, "data", "name"], [], None, ["Other"], "text", [1, None]]),
        "extensions": {
            "code": random.choice([*_CODES, token, 429, None]),
            "http_status": random.choice([404, 422, 500, 503, "404", None, True, 404.0, -1, 10**400]),
            "data": random.choice([{}, None, [], {"identifier": form.node_id}, {"identifier": [form.node_id]}]),
        },
    }


def _no_answer(random: Random, token: str) -> Served:
    words = random.choice([f"reset while sending {random.choice(disguised(token))}", "", "\ud800\x00"])
    if random.random() < 0.3:
        error = random.choice(_UNSENT)
        return Served(f"unsent, {error.__name__}", fault=lambda: error(words), left=False)
    if random.random() < 0.2:
        return Served("time-out", fault=TimeoutError, left=random.random() < 0.5)
    lost = random.choice(_LOST)
    if random.random() < 0.5:
        return Served(f"lost, {lost.__name__}", fault=lambda: lost(words))
    text = written(random, {"data": {}})
    return Served(
        f"broken off, {lost.__name__}", chunks=(text[: random.randrange(len(text))],), breaks=lambda: lost(words)
    )


def _by_status(random: Random, form: Form, token: str) -> Served:
    name, document = a_document(random, form, token)
    text = written(random, document)
    if random.random() < 0.5:
        text = random.choice(
            [b"Internal Server Error", b"<html>" + token.encode() + b"</html>", b"", b"\xff\xfe", text]
        )
    status = random.choice(_STATUSES)
    headers = tuple(random.sample(_HEADERS, random.randrange(3)))
    return Served(f"{status} with {name}", status=status, headers=headers, chunks=(text,), truth=text)


def _beyond_measure(random: Random) -> Served:
    kind = random.randrange(3)
    if kind == 0:
        return Served("100 MiB", chunks=(_MEGABYTE,) * 100)
    if kind == 1:
        return Served("bomb", headers=((b"content-encoding", b"gzip"),), chunks=(_BOMB,))
    return Served("too many items", chunks=(b"[" + b"[]," * 2_100_000 + b"[]]",))


_MEGABYTE = b" " * 2**20
_BOMB = gzip.compress(_MEGABYTE * 64, compresslevel=1)


def on_the_wire(random: Random, answer: Served) -> Served:
    """The answer in pieces, encoded, with headers that do not matter, or with an encoding that is a lie."""
    text = answer.chunks[0]
    headers = list(random.sample(_HEADERS, random.choice([0, 0, 0, 1, 2])))
    truth: bytes | None = text
    encoded = random.random()
    if encoded < 0.08:
        headers.append((b"content-encoding", b"gzip"))
        text = gzip.compress(text, compresslevel=1, mtime=0)
        if random.random() < 0.5:
            text, truth = text[: random.randrange(1, len(text))], None
    elif encoded < 0.1:
        headers.append((b"content-encoding", random.choice([b"gzip", b"br", b"deflate", b"gzip, gzip", b"zstd"])))
        truth = None if text else b""
        text = random.choice([text, zlib.compress(text)]) if text else text
    if len(text) < 300 and random.random() < 0.1:
        chunks = tuple(text[at : at + 1] for at in range(len(text)))
    elif random.random() < 0.3:
        at = random.randrange(len(text) + 1)
        chunks = (text[:at], b"", text[at:])
    else:
        chunks = (text,)
    if headers and headers[-1][0] == b"content-encoding" and not text:
        truth = b""
    return Served(answer.name, headers=tuple(headers), chunks=chunks, truth=truth)
