"""Every kind of answer there is, as a finite product: how the request ended, the status, the body, and what was asked.

A cell stands for all answers that are alike in what may matter: statuses by their meaning, bodies by their shape, lists
of errors by what the one error says and by what stands beside it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from consumers.infrahub.exchange import Event, Exchange
from consumers.infrahub.observation import Expectation

SENT_ID = "18ec9baa-2624-4515-e315-189fdf3551df"
OTHER_ID = "18ec9baa-2624-4515-e315-0000000000ff"
FIELD = "LabSiteUpsert"

FORMS: dict[str, Expectation | None] = {
    "update": Expectation(field=FIELD, action="update", node_id=SENT_ID),
    "create by key": Expectation(field=FIELD, action="create"),
    "create under our id": Expectation(field=FIELD, action="create", node_id=SENT_ID),
    "read": None,
}

STATUSES: tuple[int | None, ...] = (None, 0, 100, 101, 199, 200, 201, 204, 206, 299, 300, 302, 308, 399, 400, 401, 402)
STATUSES += (403, 404, 405, 409, 422, 428, 429, 430, 451, 499, 500, 502, 503, 504, 599, 600, 999)

CODES = (
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
    "not a code",
    429,
    None,
)

_IN_USE = {"field_name": "id", "constraint": f"{SENT_ID} is already in use"}
_ABOUT: tuple[Any, ...] = (
    {"identifier": SENT_ID},
    {"identifier": OTHER_ID},
    {"identifier": OTHER_ID, "node_kind": "LabSite"},
    {"identifier": [SENT_ID]},
    _IN_USE,
    {**_IN_USE, "field_name": "name"},
    {**_IN_USE, "constraint": f"{OTHER_ID} is already in use"},
    {},
    None,
)
_MESSAGES = ("no", "exists, but it is a BuiltinTag", "Violates uniqueness constraint 'name'", None)
_PATHS: tuple[Any, ...] = ([FIELD], [FIELD, "data", "name"], ["Other"], [], None)
_HTTP_STATUSES: tuple[Any, ...] = (404, 422, 500, 503, "404", 404.0, True, None)
_CONFIRMED = {"ok": True, "object": {"id": SENT_ID}}
_BESIDE: tuple[Any, ...] = (None, {FIELD: None}, {}, {FIELD: _CONFIRMED}, {"Other": {}}, [], [_CONFIRMED], "text", 0)

_ODD_IDS: tuple[Any, ...] = ("", " ", "a b", "\x00", "\ud800", "x" * 129, 7, None, [], {})
_ODD_OBJECTS: tuple[Any, ...] = (None, [], SENT_ID, 0)
_ODD_OKS: tuple[Any, ...] = (False, None, 1, "true", [True])
_RESULTS: tuple[Any, ...] = (
    _CONFIRMED,
    {"ok": True, "object": {"id": OTHER_ID}},
    {"ok": True, "object": {"id": SENT_ID.upper()}},
    *({"ok": True, "object": {"id": odd}} for odd in _ODD_IDS),
    {"ok": True, "object": {}},
    *({"ok": True, "object": odd} for odd in _ODD_OBJECTS),
    {"ok": True},
    *({"ok": odd, "object": {"id": SENT_ID}} for odd in _ODD_OKS),
    {"object": {"id": SENT_ID}},
    {},
    None,
    [],
    "text",
    True,
)

_NO_GRAPHQL: tuple[Any, ...] = ([], [{"data": {}}], None, 0, "text", True, {}, {"ok": True}, {"detail": []})
_ODD_DATA: tuple[Any, ...] = (None, [], "text", 0, {}, {"Other": _CONFIRMED}, {FIELD: _CONFIRMED, "Other": None})
_ODD_ERRORS: tuple[Any, ...] = ([], None, {}, "", "text", 0, ["text"], [[]], [{}, "text"])
_NO_MARKS: tuple[Any, ...] = (None, [], "text", {})
_NO_JSON = (
    b"",
    b"text",
    b"\xff",
    b"[" * 1000,
    b"\xef\xbb\xbf{}",
    b'{"data": NaN}',
    b'{"data": 1, "data": {}}',
    b"{} {}",
)


@dataclass(frozen=True)
class Cell:
    """One kind of answer to one kind of request."""

    form: str
    exchange: Exchange

    @property
    def expected(self) -> Expectation | None:
        return FORMS[self.form]


def cells() -> Iterator[Cell]:
    """All of them."""
    for form, event in itertools.product(FORMS, Event):
        if event is not Event.ANSWERED:
            yield Cell(form, Exchange(event))
    bodies = tuple(_plain_bodies())
    for form, status, body in itertools.product(FORMS, STATUSES, bodies):
        yield Cell(form, _answered(status, body))
        if status == 429:
            yield Cell(form, _answered(status, body, {"x-infrahub-admission": "shed"}))
    for form, body in itertools.product(FORMS, _bodies_with_errors()):
        yield Cell(form, _answered(200, body))


def _answered(status: int | None, body: bytes, headers: dict[str, str] | None = None) -> Exchange:
    return Exchange(Event.ANSWERED, status=status, headers=headers or {}, body=body)


def _plain_bodies() -> Iterator[bytes]:
    yield from _NO_JSON
    for document in _NO_GRAPHQL:
        yield _text(document)
    for data in _ODD_DATA:
        yield _text({"data": data})
    for result in _RESULTS:
        yield _text({"data": {FIELD: result}})
    for errors, data in itertools.product(_ODD_ERRORS, _BESIDE):
        yield _text({"data": data, "errors": errors})


def _bodies_with_errors() -> Iterator[bytes]:
    """One error in every form; then the two that are proofs, with everything beside them that takes the proof away."""
    for code, status, about, message in itertools.product(CODES, _HTTP_STATUSES, _ABOUT, _MESSAGES):
        yield _text({"data": {FIELD: None}, "errors": [_error(code, status, about, message, [FIELD])]})
    stale = _error("NODE_NOT_FOUND", 404, {"identifier": SENT_ID}, "no", [FIELD])
    in_use = _error("ATTRIBUTE_CONSTRAINT_VIOLATION", 422, _IN_USE, "no", [FIELD])
    for proof, data in itertools.product((stale, in_use), _BESIDE):
        yield _text({"data": data, "errors": [proof]})
        yield _text({"data": data, "errors": [proof, proof]})
        yield _text({"data": data, "errors": [proof, {"message": "and one more"}]})
        yield _text({"data": data, "errors": [{}, proof]})
        yield _text({"errors": [proof]})
        for path in _PATHS:
            yield _text({"data": data, "errors": [{**proof, "path": path}]})
    for code, path in itertools.product(CODES, _PATHS):
        yield _text({"data": None, "errors": [_error(code, 500, {}, "Field 'x' is not defined by type 'Y'.", path)]})
    for marks in _NO_MARKS:
        yield _text({"data": {FIELD: None}, "errors": [{"message": "no", "path": [FIELD], "extensions": marks}]})


def _error(code: Any, status: Any, about: Any, message: Any, path: Any) -> dict[str, Any]:
    return {"message": message, "path": path, "extensions": {"code": code, "http_status": status, "data": about}}


def _text(document: Any) -> bytes:
    return json.dumps(document).encode()
