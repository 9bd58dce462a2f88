"""What may be said of an answer to a write: P127 to P139, G5 and G6 in their own words, not in those of the product.

An operation is *applied* only where a whole answer with status 200 holds nothing but ``ok: true`` and the node's id,
the sent one where one was sent. It is *unwritten* only where the destination itself says, as its only error, that it
does not know the id of an update, and shows no result beside it. "Our id is in use" is decided by reading that id back.
All else, whatever it says of itself, is *unknown*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tests.hostile.answers.leaks import echoes
from tests.hostile.answers.served import Served
from tests.hostile.answers.strictly import read_strictly

Say = Literal["applied", "unwritten", "unknown", "read back"]


@dataclass(frozen=True)
class Form:
    """How one operation is written: the mutation's field, and the id that is sent with it."""

    field: str
    action: Literal["create", "update"]
    node_id: str | None


def may_be_said(form: Form, answer: Served, token: str) -> Say:
    """The verdict on one answer to one write."""
    document: Any = read_strictly(answer.truth) if answer.truth is not None and answer.status == 200 else None
    match document:
        case {"errors": [{"path": [form.field, *_], "extensions": {"code": str() as code, **marks}}]}:
            if any(value is not None for value in _results(document.get("data"))):
                return "unknown"
            data = marks.get("data")
            about: dict[str, Any] = data if isinstance(data, dict) else {}
            status, sent = marks.get("http_status"), form.node_id is not None
            stale = code == "NODE_NOT_FOUND" and type(status) is int and status == 404
            if form.action == "update" and sent and stale and about.get("identifier") == form.node_id:
                return "unwritten"
            words = about.get("constraint")
            in_use = code == "ATTRIBUTE_CONSTRAINT_VIOLATION" and about.get("field_name") == "id"
            if form.action == "create" and sent and in_use and isinstance(words, str):
                return "read back" if words.startswith(f"{form.node_id} is already in use") else "unknown"
        case {"data": {form.field: {"ok": True as ok, "object": {"id": str() as node_id}}} as data, **rest}:
            right = node_id == form.node_id if form.node_id is not None else _can_be_an_id(node_id)
            if (
                "errors" not in rest
                and len(data) == 1
                and ok is True
                and right
                and not echoes(answer.truth or b"", token)
            ):
                return "applied"
    return "unknown"


def is_read_back(kind: str, node_id: str, answer: Served, token: str) -> bool:
    """Whether the answer to the question for our own id shows that node, counts it once, and shows nothing else."""
    document: Any = read_strictly(answer.truth) if answer.truth is not None and answer.status == 200 else None
    if not isinstance(document, dict) or "errors" in document or echoes(answer.truth or b"", token):
        return False
    match document.get("data"):
        case dict() as data if isinstance(data.get(kind), dict):
            count = data[kind].get("count")
            return type(count) is int and count == 1 and bool(data[kind].get("edges") == [{"node": {"id": node_id}}])
    return False


def _results(data: Any) -> list[Any]:
    return list(data.values()) if isinstance(data, dict) else [data]


def _can_be_an_id(text: str) -> bool:
    return 0 < len(text) <= 128 and all("!" <= letter <= "~" for letter in text)
