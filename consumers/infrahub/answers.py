"""Reads the body of an answer without believing it: every shape that was seen, and those that were not, has a name.

Strictly, because a reading that repairs its text makes one answer out of two: JSON is UTF-8 without a byte order mark,
each key stands once in its object, numbers are finite, and nesting is bounded, so that nothing that later goes through
a document can run out of stack.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NoReturn

from consumers.infrahub.exchange import Exchange

_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
"""Codes are stored as they are, so anything that does not look like one is none."""

_NODE_ID = re.compile(r"[!-~]{1,128}")
"""A node's id is printable ASCII without blanks: whatever else is served cannot be sent, stored or compared again."""

MAX_NESTING = 100
"""Levels of lists and objects in one answer; a page's own take ten, a value in a plan may have 64."""


class Shape(StrEnum):
    """What the body of an answer is."""

    NOT_JSON = "no JSON"
    NOT_AN_OBJECT = "JSON, but no object"
    NEITHER = "neither data nor errors"
    DATA = "data and no errors"
    DATA_UNUSABLE = "data that is no object, and no errors"
    EMPTY_ERRORS = "an empty list of errors"
    FOREIGN_ERRORS = "errors in a shape of their own"
    ERRORS = "errors"


@dataclass(frozen=True, slots=True)
class ServerError:
    """One item of ``errors``. Missing or oddly typed parts are empty, never an exception."""

    message: str
    code: str | None = None
    http_status: int | None = None
    path: tuple[Any, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        marks = [str(mark) for mark in (self.code, self.http_status) if mark is not None]
        return f"{self.message} ({', '.join(marks)})" if marks else self.message


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer, taken apart.

    ``odd_data``: there was ``data`` that is neither an object nor null. ``document`` is the whole of a clean answer.
    """

    shape: Shape
    data: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[ServerError, ...] = ()
    odd_data: bool = False
    document: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of one request, and the body of the answer taken apart."""

    exchange: Exchange
    answer: Answer


def read_answer(exchange: Exchange) -> Answer:
    """Take the body apart; never raises."""
    try:
        document = _document(exchange.body)
    except (ValueError, RecursionError):
        return Answer(Shape.NOT_JSON)
    if not isinstance(document, dict):
        return Answer(Shape.NOT_AN_OBJECT)
    data = document.get("data")
    usable = data if isinstance(data, dict) else {}
    odd = data is not None and not isinstance(data, dict)
    if "errors" in document:
        shape, errors = _read_errors(document["errors"])
        return Answer(shape, data=usable, errors=errors, odd_data=odd)
    if "data" not in document:
        return Answer(Shape.NEITHER, document=document)
    shape = Shape.DATA if isinstance(data, dict) else Shape.DATA_UNUSABLE
    return Answer(shape, data=usable, odd_data=odd, document=document)


def is_node_id(value: object) -> bool:
    """Whether an answered value can be the id of a node."""
    return isinstance(value, str) and _NODE_ID.fullmatch(value) is not None


def _document(body: bytes) -> Any:
    document = json.loads(
        body.decode("utf-8"), object_pairs_hook=_each_key_once, parse_float=_finite, parse_constant=_no_number
    )
    if body.count(b"[") + body.count(b"{") > MAX_NESTING and _is_deep(document):
        raise ValueError("nested too deeply")
    return document


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return mapping


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number beyond all numbers")
    return number


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _is_deep(document: Any) -> bool:
    level = [document]
    for _ in range(MAX_NESTING):
        items = (item for holder in level for item in (holder.values() if isinstance(holder, dict) else holder))
        level = [item for item in items if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def _read_errors(errors: object) -> tuple[Shape, tuple[ServerError, ...]]:
    if errors is None or errors == []:
        return Shape.EMPTY_ERRORS, ()
    if isinstance(errors, list) and all(isinstance(item, dict) for item in errors):
        return Shape.ERRORS, tuple(_read_error(item) for item in errors)
    items = errors if isinstance(errors, list) else [errors]
    return Shape.FOREIGN_ERRORS, tuple(ServerError(message=_words(item)) for item in items)


def _read_error(item: dict[str, Any]) -> ServerError:
    extensions = item.get("extensions")
    marks = extensions if isinstance(extensions, dict) else {}
    code, status, path, data = marks.get("code"), marks.get("http_status"), item.get("path"), marks.get("data")
    return ServerError(
        message=_words(item.get("message")),
        code=code if isinstance(code, str) and _CODE.fullmatch(code) else None,
        http_status=status if isinstance(status, int) and not isinstance(status, bool) else None,
        path=tuple(path) if isinstance(path, list) else (),
        data=data if isinstance(data, dict) else {},
    )


def _words(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("message"), str):
        return str(value["message"])
    return value if isinstance(value, str) else json.dumps(value, default=str)
