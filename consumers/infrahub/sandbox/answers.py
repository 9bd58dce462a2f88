"""HTTP answers, honest and faulty, as the bytes that leave the sandbox."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.types import Receive, Scope, Send

from consumers.infrahub.sandbox.errors import UNDEFINED, MutationRefusedError
from consumers.infrahub.sandbox.execution import Answer, MutationField, located_error
from consumers.infrahub.sandbox.faults import FaultAnswer
from consumers.infrahub.sandbox.transport import close_connection, end_with_next_request

_JSON = "application/json"
_TEXT = "text/plain; charset=utf-8"
_DEFUNCT = "Failed to read from defunct connection IPv4Address(('127.0.0.1', 7687))"
_DATABASE_GONE = "Unable to connect to the database"
_MERGING = "A merge is in progress; try again later."
_MERGE_FAILED = "A merge failed and has to be recovered first."


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer ready to be sent.

    ``sent`` below the length of the body, or ``drop``, breaks the connection; ``closes`` ends it behind the answer,
    ``last`` when the next request comes.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = _JSON
    headers: tuple[tuple[str, str], ...] = ()
    drop: bool = False
    closes: bool = False
    last: bool = False
    sent: int | None = None

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send it."""
        if self.drop:
            await close_connection(scope, send)
            return
        if self.last:
            end_with_next_request(scope)
        headers = [(b"content-type", self.content_type.encode()), (b"content-length", str(len(self.body)).encode())]
        headers += [(name.encode(), value.encode()) for name, value in self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        whole = self.sent is None
        await send({"type": "http.response.body", "body": self.body[: self.sent], "more_body": not whole})
        if self.closes or not whole:
            await close_connection(scope, send)


def json_answer(document: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> HttpAnswer:
    """A JSON answer. Escaped to ASCII, since a stored text may hold a lone surrogate, which UTF-8 cannot."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return HttpAnswer(status=status, body=body, headers=headers)


def plain_500() -> HttpAnswer:
    """A crash: text, and the server closes the connection behind it without having said so."""
    return HttpAnswer(status=500, body=b"Internal Server Error", content_type=_TEXT, closes=True)


def rest_error(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> HttpAnswer:
    """The error shape of everything but GraphQL resolvers: an integer code in ``extensions``."""
    error = {"message": message, "extensions": {"code": status}}
    return json_answer({"data": None, "errors": [error]}, status, headers)


def unauthorised(message: str = "Authentication is required to perform this operation") -> HttpAnswer:
    """No, or a wrong, token, where GraphQL is spoken."""
    extensions = {"code": "AUTHENTICATION_REQUIRED", "http_status": 401, "data": {}}
    return json_answer({"data": None, "errors": [{"message": message, "extensions": extensions}]}, 401)


def forbidden(message: str) -> HttpAnswer:
    """A token whose account may not do this: said before anything ran."""
    extensions = {"code": "PERMISSION_DENIED", "http_status": 403, "data": {"action": None, "resource_kind": None}}
    return json_answer({"data": None, "errors": [{"message": message, "extensions": extensions}]}, 403)


def plain_refusal(message: str, status: int = 400) -> HttpAnswer:
    """A request that is no GraphQL request: errors are plain strings."""
    return json_answer({"errors": [message]}, status)


def branch_not_found(name: str) -> HttpAnswer:
    """An answer whose errors are plain strings."""
    return plain_refusal(f"Branch: {name} not found.", 404)


def faulty_answer(fault: FaultAnswer, answer: Answer, mutations: tuple[MutationField, ...]) -> HttpAnswer:
    """What goes out in place of ``answer``; ``answer`` is the truth, or a made-up success where nothing ran."""
    match fault:
        case FaultAnswer.TRUE:
            return json_answer(answer)
        case FaultAnswer.DROP:
            return HttpAnswer(drop=True)
        case FaultAnswer.TEXT_500:
            return plain_500()
        case FaultAnswer.NOT_JSON:
            return HttpAnswer(body=b"<html><body>upstream said hello</body></html>", content_type="text/html")
        case FaultAnswer.EMPTY_ERRORS:
            return json_answer({**answer, "errors": []})
        case FaultAnswer.TRUNCATED:
            full = json_answer(answer)
            return replace(full, sent=len(full.body) // 2)
        case FaultAnswer.SHED_429:
            shed = (("retry-after", "1"), ("x-infrahub-admission", "shed"))
            return rest_error(429, "Server is shedding load; retry later.", shed)
        case FaultAnswer.UNAVAILABLE_503:
            extensions = {"code": UNDEFINED, "http_status": 503, "data": {}}
            error = {"message": _DATABASE_GONE, "extensions": extensions}
            return json_answer({"data": None, "errors": [error]}, 503)
        case FaultAnswer.UNAUTHORISED_401:
            return unauthorised()
        case FaultAnswer.TRUE_THEN_GONE:
            return replace(json_answer(answer), last=True)
        case FaultAnswer.DEFUNCT_CONNECTION:
            return _refused_by_all(mutations, _DEFUNCT)
        case FaultAnswer.DATABASE_AWAY:
            return _refused_by_all(mutations, _DATABASE_GONE, http_status=503)
        case FaultAnswer.MERGE_IN_PROGRESS:
            return _refused_by_all(mutations, _MERGING, code="MERGE_IN_PROGRESS", http_status=423)
        case FaultAnswer.MERGE_RECOVERY_REQUIRED:
            return _refused_by_all(mutations, _MERGE_FAILED, code="MERGE_RECOVERY_REQUIRED", http_status=423)
        case _:
            data = {key: _altered(fault, payload) for key, payload in (answer.get("data") or {}).items()}
            return json_answer({**answer, "data": data})


def _refused_by_all(
    mutations: tuple[MutationField, ...], message: str, *, code: str = UNDEFINED, http_status: int = 500
) -> HttpAnswer:
    """HTTP 200 in which each mutation, once begun, ended in the same error."""
    error = MutationRefusedError(message, code, http_status)
    errors = [located_error(mutation, error) for mutation in mutations]
    return json_answer({"errors": errors, "data": {mutation.key: None for mutation in mutations}})


def made_up_success(mutations: tuple[MutationField, ...]) -> Answer:
    """The answer to a write that did not happen, for faults that only alter an answer."""
    return {
        "data": {
            mutation.key: {
                item.key: True if item.name == "ok" else _made_up_object(item.name) for item in mutation.root.payload
            }
            for mutation in mutations
        }
    }


def _made_up_object(name: str) -> Any:
    return {"id": _other_id("nothing was written")} if name == "object" else None


def _altered(fault: FaultAnswer, payload: Any) -> Any:
    if not isinstance(payload, Mapping):
        return payload
    if fault is FaultAnswer.NOT_OK:
        return {**payload, "ok": False}
    if fault is FaultAnswer.OBJECT_NULL:
        return {**payload, "object": None}
    node = payload.get("object")
    if not isinstance(node, Mapping):
        return payload
    other = "" if fault is FaultAnswer.EMPTY_ID else _other_id(str(node.get("id")))
    return {**payload, "object": {**node, "id": other}}


def _other_id(node_id: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, node_id))
