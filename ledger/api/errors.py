"""Refusals of the HTTP API. Which status the other refusals of the project have there: :mod:`ledger.api.statuses`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ledger.errors import ApplyLedgerError


class ApiError(ApplyLedgerError):
    """Base of what only a request can do wrong. ``status`` is its HTTP status."""

    status: ClassVar[int] = 400
    headers: Mapping[str, str] = {}


class InvalidCursorError(ApiError):
    """The cursor is not from this list, or is from a list with other filters."""


class InvalidIdentityError(ApiError):
    """The text is not an identity of an object."""


class InvalidRequestError(ApiError):
    """A parameter or the body is not as documented; every fault is named, no value is repeated."""

    status: ClassVar[int] = 422


class UnauthenticatedError(ApiError):
    """The token is missing or not valid."""

    status: ClassVar[int] = 401
    headers: Mapping[str, str] = {"WWW-Authenticate": 'Bearer realm="apply-ledger"'}


class ForbiddenError(ApiError):
    """The token's role does not have this right."""

    status: ClassVar[int] = 403


class ForeignOriginError(ApiError):
    """The request comes from another site's page, or uses a host name that this server does not have."""

    status: ClassVar[int] = 403


class NotThereError(ApiError):
    """The ledger has nothing under this name."""

    status: ClassVar[int] = 404


class MethodNotAllowedError(ApiError):
    """This address does not take this method."""

    status: ClassVar[int] = 405


class PositionAheadError(ApiError):
    """The log has not reached this position: it is from another log, or a backup was restored."""

    status: ClassVar[int] = 409


class IdempotencyConflictError(ApiError):
    """This idempotency key was used before with another request."""

    status: ClassVar[int] = 409


class RequestTooLargeError(ApiError):
    """The body is larger than the limit."""

    status: ClassVar[int] = 413


class MediaTypeError(ApiError):
    """The body is not declared as JSON."""

    status: ClassVar[int] = 415


class TooManyRequestsError(ApiError):
    """One token or address sends more requests than are allowed."""

    status: ClassVar[int] = 429

    def __init__(self, *, checked: str, expected: str, found: str, next_action: str, seconds: int) -> None:
        super().__init__(checked=checked, expected=expected, found=found, next_action=next_action)
        self.headers = {"Retry-After": str(seconds)}


class TooManyStreamsError(TooManyRequestsError):
    """The maximum number of event streams is open."""


class TooManyAuditsError(TooManyRequestsError):
    """As many audits run as this server runs at once."""


class AuditTooLongError(ApiError):
    """An audit took longer than this server lets one take."""

    status: ClassVar[int] = 503


class AuditEndedError(ApiError):
    """An audit was ended before it was done: nobody waited for it any more, or the server stops."""

    status: ClassVar[int] = 503


class ExportTooLargeError(ApiError):
    """An export would take more room than this server gives one."""

    status: ClassVar[int] = 500


class InvalidPlaceError(ApiError):
    """A text that is neither a position nor a time."""


class InvalidEvidenceError(ApiError):
    """A text that is no signed note of a checkpoint, or no public key."""


class OrdersNotTakenError(ApiError):
    """This server was started with --read-only."""

    status: ClassVar[int] = 403


class DefectError(ApiError):
    """A defect of this program; the server's log has the details."""

    status: ClassVar[int] = 500


def not_there(what: str, next_action: str) -> NotThereError:
    """The refusal of a name that the ledger does not know."""
    return NotThereError(
        checked=what, expected="something that the ledger knows", found="nothing", next_action=next_action
    )
