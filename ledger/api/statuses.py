"""The HTTP status of each refusal of the project. Apart from the refusals of the API, which every command imports."""

from __future__ import annotations

from collections.abc import Mapping

from ledger.api.errors import ApiError
from ledger.audit import errors as audit
from ledger.errors import ApplyLedgerError, ConfigurationError
from ledger.exit_codes import ExitCode
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.store import errors as store

_BY_CLASS: Mapping[type[ApplyLedgerError], int] = {
    audit.UnknownBindingToVerifyError: 404,
    audit.OperationNotProvableError: 404,
    audit.NoCheckpointForProofError: 409,
    audit.NoTrustedKeyError: 409,
    audit.NoteNotTrustedError: 409,
    audit.CheckpointOfNoBindingError: 409,
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
