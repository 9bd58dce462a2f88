"""What the sandbox answers when it refuses, in the words and codes of Infrahub 1.11.

These are answers of a *server*, so they are not below ``ApplyLedgerError``: a client sees them only as JSON or text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

UNDEFINED = "UNDEFINED_ERROR"
_INVALID_TYPE = re.compile(r"^(?P<received>.+?) is not a valid (?P<expected>\S+)$")
"""Within one line: a value with a line break in it is answered with another code."""


@dataclass(eq=False)
class MutationRefusedError(Exception):
    """One error that a resolver raised; it becomes one item of ``errors`` with the path of its field."""

    message: str
    code: str = UNDEFINED
    http_status: int = 500
    data: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    @property
    def extensions(self) -> dict[str, Any]:
        """The ``extensions`` block that the error carries on the wire."""
        return {"code": self.code, "http_status": self.http_status, "data": self.data}


class InvalidFieldsError(Exception):
    """One or more fields of one payload are wrong; several fan out into one error each."""

    def __init__(self, kind: str, reasons: Sequence[tuple[str, str]]) -> None:
        super().__init__(", ".join(f"{reason} at {name}" if name else reason for name, reason in reasons))
        self.kind = kind
        self.reasons = tuple(reasons)

    def errors(self) -> list[tuple[str, MutationRefusedError]]:
        """Each wrong field with the catalogued error that the server makes of its reason.

        With a reason among them that names no field, all become one error that has no code.
        """
        if not all(name for name, _ in self.reasons):
            return [("", unprocessable(str(self)))]
        return [(name, _classify(self.kind, name, reason)) for name, reason in self.reasons]


class PlainServerError(Exception):
    """A crash outside the resolvers: the server answers HTTP 500 with text, not JSON."""


def node_not_found(kind: str, identifier: str, message: str | None = None) -> MutationRefusedError:
    """NODE_NOT_FOUND: the same code and status for a stale id and for a missing peer, told apart by ``identifier``."""
    return MutationRefusedError(
        message=message or f"Unable to find the node {identifier} / {kind} in the database.",
        code="NODE_NOT_FOUND",
        http_status=404,
        data={"node_kind": kind, "identifier": identifier},
    )


def uniqueness_violated(label: str) -> MutationRefusedError:
    """The first violated constraint, without the id of the object that holds the value."""
    return MutationRefusedError(message=f"Violates uniqueness constraint '{label}'", http_status=422)


def unprocessable(message: str) -> MutationRefusedError:
    """A validation that the server's catalogue does not know by code: UNDEFINED_ERROR with status 422."""
    return MutationRefusedError(message=message, http_status=422)


def refuse_fields(kind: str, reasons: Sequence[tuple[str, str]]) -> NoReturn:
    """Raise :class:`InvalidFieldsError` for these ``(field, reason)`` pairs."""
    raise InvalidFieldsError(kind, reasons)


def _classify(kind: str, name: str, reason: str) -> MutationRefusedError:
    """The server derives the code from the wording of the reason; so do we, to answer with the same code."""
    message = f"{reason} at {name}"
    place = {"node_kind": kind, "field_name": name}
    if " is mandatory for " in reason:
        return MutationRefusedError(message, "ATTRIBUTE_REQUIRED", 422, place)
    match = _INVALID_TYPE.match(reason)
    if match:
        types = {"expected_type": match["expected"], "received_type": match["received"]}
        return MutationRefusedError(message, "ATTRIBUTE_INVALID_TYPE", 422, {**place, **types})
    detail = {"constraint": reason, "detail": None}
    return MutationRefusedError(message, "ATTRIBUTE_CONSTRAINT_VIOLATION", 422, {**place, **detail})
