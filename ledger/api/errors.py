"""Refusals of the HTTP API, and the status that each refusal of the project has there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from ledger.errors import ApplyLedgerError, ConfigurationError
from ledger.exit_codes import ExitCode
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.store import errors as store


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


class OrdersNotTakenError(ApiError):
    """This server was started with --read-only."""

    status: ClassVar[int] = 403


class DefectError(ApiError):
    """A defect of this program; the server's log has the details."""

    status: ClassVar[int] = 500


_BY_CLASS: Mapping[type[ApplyLedgerError], int] = {
    store.UnknownBindingError: 404,
    store.UnknownRunError: 404,
    store.PlanNotStoredError: 404,
    store.BodyTooLargeError: 413,
    store.LedgerUnavailableError: 503,
    store.LedgerBusyError: 503,
    store.AlarmError: 500,
    store.BodyRefusedError: 422,
    UnserializablePayloadValueError: 400,
    ConfigurationError: 409,
    store.RunFinishedError: 409,
    store.RunStillOpenError: 409,
}
_BY_EXIT_CODE: Mapping[ExitCode, int] = {
    ExitCode.USAGE: 422,
    ExitCode.REFUSED: 409,
    ExitCode.STALE: 409,
    ExitCode.APPROVAL_MISSING: 409,
    ExitCode.BUSY: 503,
}


def status_of(error: ApplyLedgerError) -> int:
    """The HTTP status of a refusal; 500 for trouble of this installation that no request can mend."""
    if isinstance(error, ApiError):
        return error.status
    for known in type(error).__mro__:
        if known in _BY_CLASS:
            return _BY_CLASS[known]
    return _BY_EXIT_CODE.get(error.exit_code, 500)


def headers_of(error: ApplyLedgerError) -> dict[str, str]:
    """What goes with the status: how to log in, when to come again."""
    if isinstance(error, ApiError):
        return dict(error.headers)
    return {"Retry-After": "5"} if status_of(error) == 503 else {}


def not_there(what: str, next_action: str) -> NotThereError:
    """The refusal of a name that the ledger does not know."""
    return NotThereError(
        checked=what, expected="something that the ledger knows", found="nothing", next_action=next_action
    )
