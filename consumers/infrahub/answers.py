"""Reads the body of an answer without believing it: every shape that was seen, and those that were not, has a name."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from consumers.infrahub.exchange import Exchange

_CODE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
"""Codes are stored as they are, so anything that does not look like one is none."""


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
    """The body of an answer, taken apart."""

    shape: Shape
    data: Mapping[str, Any] = field(default_factory=dict)
    errors: tuple[ServerError, ...] = ()


def read_answer(exchange: Exchange) -> Answer:
    """Take the body apart; never raises."""
    try:
        document = json.loads(exchange.body)
    except (ValueError, RecursionError):
        return Answer(Shape.NOT_JSON)
    if not isinstance(document, dict):
        return Answer(Shape.NOT_AN_OBJECT)
    data = document.get("data")
    usable = data if isinstance(data, dict) else {}
    if "errors" in document:
        shape, errors = _read_errors(document["errors"])
        return Answer(shape, data=usable, errors=errors)
    if "data" not in document:
        return Answer(Shape.NEITHER)
    return Answer(Shape.DATA if isinstance(data, dict) else Shape.DATA_UNUSABLE, data=usable)


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
