"""Reduces one exchange of a mutation to the few facts on which its classification rests."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

from consumers.infrahub.answers import Answer, ServerError, Shape, is_node_id
from consumers.infrahub.exchange import Event, Exchange


class Status(StrEnum):
    """HTTP statuses, as far as they differ in meaning."""

    NONE = "none"
    OK = "200"
    REDIRECT = "3xx"
    UNAUTHORISED = "401"
    FORBIDDEN = "403"
    NOT_FOUND = "404"
    SHED = "429 marked as shed"
    LIMITED = "429"
    CLIENT = "other 4xx"
    SERVER = "5xx"
    ODD = "any other"


class Finding(StrEnum):
    """What a list of errors says about the one mutation that was sent."""

    NONE = "nothing of use"
    STALE_ID = "the recorded id is unknown"
    STALE_ID_OTHER_KIND = "the recorded id belongs to another kind"
    OWN_ID_IN_USE = "our id for this create is in use"
    KEY_ELSEWHERE = "the key belongs to an object that cannot be reached here"
    RESULT_BESIDE_ERRORS = "a result beside the errors"
    UNIQUENESS = "a uniqueness constraint is named"
    DATABASE_AWAY = "the server's database cannot be reached"
    NOT_STARTED = "the request was refused before it ran (no path)"
    INNER_FAULT = "a fault inside the server"


class Result(StrEnum):
    """What an answer without errors holds for the one mutation that was sent."""

    NONE = "not looked at"
    MISSING = "no result for the mutation"
    NOT_OK = "ok is not true"
    NO_OBJECT = "no object"
    NO_ID = "no node id"
    OTHER_ID = "another node id than the one sent"
    DONE = "ok and the node id"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What was asked of the destination.

    Attributes:
        field: the mutation's name in the answer.
        action: what the write does.
        node_id: the id that was sent; None for a create that the server keys.
        data: the whole input that was sent, peers' ids in it.
    """

    field: str
    action: Literal["create", "update"]
    node_id: str | None = None
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Observation:
    """The facts of one exchange; :data:`consumers.infrahub.classification.TABLE` matches on them."""

    event: Event
    status: Status = Status.NONE
    shape: Shape | None = None
    finding: Finding = Finding.NONE
    code: str | None = None
    result: Result = Result.NONE


def observe(exchange: Exchange, answer: Answer, expected: Expectation | None) -> Observation:
    """The facts of ``exchange``, whose body is ``answer``; for a read (no expectation) data counts as it is."""
    if exchange.event is not Event.ANSWERED:
        return Observation(event=exchange.event)
    status = _status(exchange)
    seen = answer.shape if status is Status.OK else None
    return Observation(
        event=exchange.event,
        status=status,
        shape=seen,
        finding=_finding(answer, expected) if seen is Shape.ERRORS else Finding.NONE,
        code=answer.errors[0].code if answer.errors else None,
        result=_result(answer, expected) if seen is Shape.DATA and expected is not None else Result.NONE,
    )


_EXACT = {
    200: Status.OK,
    401: Status.UNAUTHORISED,
    403: Status.FORBIDDEN,
    404: Status.NOT_FOUND,
}
_BY_HUNDRED = {3: Status.REDIRECT, 4: Status.CLIENT, 5: Status.SERVER}


def _status(exchange: Exchange) -> Status:
    if exchange.status is None:
        return Status.NONE
    if exchange.status == 429:
        return Status.SHED if exchange.shed else Status.LIMITED
    return _EXACT.get(exchange.status) or _BY_HUNDRED.get(exchange.status // 100, Status.ODD)


def _finding(answer: Answer, expected: Expectation | None) -> Finding:
    if expected is not None:
        if answer.odd_data or any(value is not None for value in answer.data.values()):
            return Finding.RESULT_BESIDE_ERRORS
        found = _finding_of_one(answer.errors[0], expected) if len(answer.errors) == 1 else None
        if found is not None:
            return found
    if any(error.http_status == 503 for error in answer.errors):
        return Finding.DATABASE_AWAY
    if any((error.http_status or 0) >= 500 for error in answer.errors):
        # The server labels unknown fields and bad variables like its own faults; what tells them apart is the path.
        return Finding.INNER_FAULT if any(error.path for error in answer.errors) else Finding.NOT_STARTED
    if any("uniqueness constraint" in error.message for error in answer.errors):
        return Finding.UNIQUENESS
    return Finding.NONE


def _finding_of_one(error: ServerError, expected: Expectation) -> Finding | None:
    """What one error says when it is alone: a second one beside it would be about something that is not understood."""
    if _is_not_found(error, expected):
        if _names_recorded_id(error, expected):
            return Finding.STALE_ID_OTHER_KIND if "exists, but it is a" in error.message else Finding.STALE_ID
        return Finding.KEY_ELSEWHERE if _names_unsent_object(error, expected) else None
    return Finding.OWN_ID_IN_USE if _names_own_id(error, expected) else None


def _is_not_found(error: ServerError, expected: Expectation) -> bool:
    """Both halves in one error (P39), of our mutation."""
    return error.code == "NODE_NOT_FOUND" and error.http_status == 404 and error.path[:1] == (expected.field,)


def _names_recorded_id(error: ServerError, expected: Expectation) -> bool:
    """About the recorded id: a missing peer gives the same pair."""
    return (
        expected.action == "update"
        and expected.node_id is not None
        and error.data.get("identifier") == expected.node_id
    )


def _names_unsent_object(error: ServerError, expected: Expectation) -> bool:
    """About an object of our kind that a keyed create did not name: the one that holds its key, out of reach.

    It was made on the default branch after the fork, or is of another kind of the same generic; to rebase, as the
    server itself advises, helps with the first alone. A missing peer of the same kind is named by an id that was sent.
    """
    identifier = error.data.get("identifier")
    return (
        expected.action == "create"
        and expected.field == f"{error.data.get('node_kind')}Upsert"
        and is_node_id(identifier)
        and identifier not in _sent_ids(expected.data)
    )


def _sent_ids(data: Mapping[str, Any]) -> set[Any]:
    peers = (peer for sent in data.values() for peer in (sent if isinstance(sent, list) else [sent]))
    return {peer.get("id") for peer in peers if isinstance(peer, dict)}


def _names_own_id(error: ServerError, expected: Expectation) -> bool:
    """ "Already in use at id", about the id that we chose for this create."""
    constraint = error.data.get("constraint")
    return (
        expected.action == "create"
        and error.code == "ATTRIBUTE_CONSTRAINT_VIOLATION"
        and error.path[:1] == (expected.field,)
        and expected.node_id is not None
        and error.data.get("field_name") == "id"
        and isinstance(constraint, str)
        and constraint.startswith(f"{expected.node_id} is already in use")
    )


def _result(answer: Answer, expected: Expectation) -> Result:
    result = answer.data.get(expected.field)
    if not isinstance(result, dict) or len(answer.data) > 1:
        return Result.MISSING
    if result.get("ok") is not True:
        return Result.NOT_OK
    node = result.get("object")
    if not isinstance(node, dict):
        return Result.NO_OBJECT
    node_id = node.get("id")
    if not is_node_id(node_id):
        return Result.NO_ID
    if expected.node_id is not None and node_id != expected.node_id:
        return Result.OTHER_ID
    return Result.DONE
