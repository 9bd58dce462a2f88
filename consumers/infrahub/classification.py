"""The one table that says what an answer proves (G5, G6).

The first row that matches decides. Every combination of facts has a row; a test walks the whole product. Only two rows
claim that nothing was written, and both rest on the destination's own not-found for the id that an update is keyed by:
that path creates nothing (P133). No other answer is believed, whatever its code: "defunct connection" errors with HTTP
200 and plain-text 500 answers have hidden committed writes, and a list of errors can come after the write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from consumers.infrahub import errors
from consumers.infrahub.answers import Shape
from consumers.infrahub.exchange import Event
from consumers.infrahub.observation import Finding, Observation, Result, Status
from ledger.destination import OutcomeUnknownError


class Verdict(StrEnum):
    """What may be said of one operation."""

    APPLIED = "applied"
    UNWRITTEN = "proven unwritten"
    UNKNOWN = "may have written"
    READ_BACK = "may have written; our own id decides"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. A None matches everything; ``error`` is None where there is nothing to raise."""

    name: str
    verdict: Verdict
    error: type[OutcomeUnknownError] | None
    next_action: str
    events: frozenset[Event] = frozenset({Event.ANSWERED})
    statuses: frozenset[Status] | None = None
    shapes: frozenset[Shape] | None = None
    findings: frozenset[Finding] | None = None
    codes: frozenset[str] | None = None
    results: frozenset[Result] | None = None

    def matches(self, seen: Observation) -> bool:
        """Whether this row speaks about what was seen."""
        return (
            seen.event in self.events
            and (self.statuses is None or seen.status in self.statuses)
            and (self.shapes is None or seen.shape in self.shapes)
            and (self.findings is None or seen.finding in self.findings)
            and (self.codes is None or seen.code in self.codes)
            and (self.results is None or seen.result in self.results)
        )

    @property
    def is_final(self) -> bool:
        """Whether another plan is the way on, so that sending the same operation again under its run helps nobody."""
        return self.next_action in _ONLY_A_FRESH_PLAN


_LOOK = "check the object at the destination, then resume the run; sending the operation again is safe"
_AGAIN = "check that the server is up and reachable, then resume the run"
_TOKEN = "give a valid token of the destination, then resume the run"  # noqa: S105 - advice, not a token
_ROLE = "give the token's account a role that may do this, then resume the run"
_BRANCH = (
    "check address and branch, and rebase one that is behind main, then resume the run; a merged branch takes no "
    "writes, make a fresh plan for another"
)
_WAIT = "wait until the destination is less busy, then resume the run"
_SERVER_LOG = "read the server's log for this moment, look at the object at the destination, then resume the run"
_DATABASE = "check that the destination's database is up, look at the object there, then resume the run"
_SCHEMA = "the live schema does not take this document; look at the object there, then make a fresh plan"
_PLAN = "look at the object at the destination, correct source or mapping, then make a fresh plan"
_UNIQUE = (
    "look for the object that holds the value: on this branch, on main since the branch was made (rebase the branch) "
    "or of a sibling kind; correct source or mapping where it is not that, then make a fresh plan"
)
_KEY = (
    "an object made on main since the branch was made has this key, or one of a sibling kind: rebase the branch or "
    "change the key, then make a fresh plan"
)
_OWN_ID = (
    "the object that this run made was deleted, or its id is taken on another branch or by another kind: this run can "
    "never make it again; make a fresh plan"
)
_DELETED = "the object was deleted, or never was on this branch: make a fresh plan"
_REPLACED = "the recorded id now belongs to an object of another kind: make a fresh plan"
_ENDPOINT = "check that the address is an Infrahub server and no proxy or login page, then resume the run"
_SIZE = (
    "check that the address is an Infrahub server; if it is, find the object there whose values are that large, then "
    "resume the run"
)
_ECHO = "find what writes the token into objects or answers of the destination, change the token, then resume the run"

_ONLY_A_FRESH_PLAN = frozenset({_SCHEMA, _PLAN, _UNIQUE, _KEY, _OWN_ID, _DELETED, _REPLACED})

_WHILE_PLANNING: Mapping[str, str] = {
    _LOOK: "read the server's log for this moment, then plan again",
    _AGAIN: "check that the server is up and reachable, then plan again",
    _TOKEN: "give a valid token of the destination, then plan again",
    _ROLE: "give the token's account a role that may read this, then plan again",
    _BRANCH: "check address and branch, then plan again",
    _WAIT: "wait until the destination is less busy, then plan again",
    _SERVER_LOG: "read the server's log for this moment, then plan again",
    _DATABASE: "check that the destination's database is up, then plan again",
    _SCHEMA: "the live schema does not take this document; check the version of the server, then plan again",
    _PLAN: "correct what the server names, in the mapping or at the destination, then plan again",
    _SIZE: "check that the address is an Infrahub server; if it is, find the object there whose values are that large",
    _ECHO: "find what writes the token into objects or answers of the destination, change the token, then plan again",
    _ENDPOINT: "check that the address is an Infrahub server and no proxy or login page, then plan again",
}
"""There is no run to resume yet, and nothing that a reading could have written."""


def _no_answer(name: str, event: Event, error: type[OutcomeUnknownError], next_action: str) -> Row:
    return Row(name, Verdict.UNKNOWN, error, next_action, events=frozenset({event}))


def _by_status(name: str, status: Status, error: type[OutcomeUnknownError], next_action: str) -> Row:
    return Row(name, Verdict.UNKNOWN, error, next_action, statuses=frozenset({status}))


def _by_shape(name: str, shape: Shape, error: type[OutcomeUnknownError], next_action: str) -> Row:
    return Row(name, Verdict.UNKNOWN, error, next_action, shapes=frozenset({shape}))


def _by_finding(
    name: str, finding: Finding, verdict: Verdict, error: type[OutcomeUnknownError] | None, next_action: str
) -> Row:
    return Row(name, verdict, error, next_action, shapes=frozenset({Shape.ERRORS}), findings=frozenset({finding}))


def _by_code(name: str, codes: set[str], error: type[OutcomeUnknownError], next_action: str) -> Row:
    return Row(name, Verdict.UNKNOWN, error, next_action, shapes=frozenset({Shape.ERRORS}), codes=frozenset(codes))


def _by_result(name: str, result: Result, error: type[OutcomeUnknownError] | None, next_action: str) -> Row:
    verdict = Verdict.APPLIED if error is None else Verdict.UNKNOWN
    return Row(name, verdict, error, next_action, shapes=frozenset({Shape.DATA}), results=frozenset({result}))


TABLE: tuple[Row, ...] = (
    _no_answer("refused", Event.REFUSED, errors.DestinationUnreachableError, _AGAIN),
    _no_answer("connect time-out", Event.CONNECT_TIMEOUT, errors.DestinationUnreachableError, _AGAIN),
    _no_answer("no free connection", Event.NO_FREE_CONNECTION, errors.DestinationUnreachableError, _AGAIN),
    _no_answer("deadline before sending", Event.DEADLINE_UNSENT, errors.DestinationUnreachableError, _AGAIN),
    _no_answer("time-out", Event.TIMED_OUT, errors.AnswerLostError, _LOOK),
    _no_answer("connection lost", Event.CONNECTION_LOST, errors.AnswerLostError, _LOOK),
    _no_answer("broken encoding", Event.UNDECODABLE, errors.UnreadableAnswerError, _ENDPOINT),
    _no_answer("too large", Event.TOO_LARGE, errors.AnswerTooLargeError, _SIZE),
    _no_answer("echoed credential", Event.CREDENTIAL_ECHOED, errors.CredentialEchoedError, _ECHO),
    _no_answer("unforeseen fault", Event.OTHER_FAULT, errors.AnswerLostError, _LOOK),
    _by_status("shed", Status.SHED, errors.AdmissionShedError, _WAIT),
    _by_status("rate limit", Status.LIMITED, errors.DestinationBusyError, _WAIT),
    _by_status("server fault", Status.SERVER, errors.DestinationFaultError, _SERVER_LOG),
    _by_status("redirect", Status.REDIRECT, errors.UnreadableAnswerError, _ENDPOINT),
    _by_status("unauthorised", Status.UNAUTHORISED, errors.CredentialRejectedError, _TOKEN),
    _by_status("forbidden", Status.FORBIDDEN, errors.PermissionRefusedError, _ROLE),
    _by_status("not found", Status.NOT_FOUND, errors.BranchUnavailableError, _BRANCH),
    _by_status("other refusal", Status.CLIENT, errors.DestinationRejectedError, _PLAN),
    _by_status("odd status", Status.ODD, errors.UnreadableAnswerError, _ENDPOINT),
    _by_status("no status", Status.NONE, errors.UnreadableAnswerError, _ENDPOINT),
    _by_shape("no JSON", Shape.NOT_JSON, errors.UnreadableAnswerError, _ENDPOINT),
    _by_shape("no object", Shape.NOT_AN_OBJECT, errors.UnreadableAnswerError, _ENDPOINT),
    _by_shape("neither data nor errors", Shape.NEITHER, errors.UnreadableAnswerError, _ENDPOINT),
    _by_shape("unusable data", Shape.DATA_UNUSABLE, errors.UnconfirmedWriteError, _LOOK),
    _by_shape("empty errors", Shape.EMPTY_ERRORS, errors.ContradictoryAnswerError, _LOOK),
    _by_shape("foreign errors", Shape.FOREIGN_ERRORS, errors.DestinationRejectedError, _LOOK),
    _by_finding("stale id", Finding.STALE_ID, Verdict.UNWRITTEN, None, _DELETED),
    _by_finding("stale id of another kind", Finding.STALE_ID_OTHER_KIND, Verdict.UNWRITTEN, None, _REPLACED),
    _by_finding("own id in use", Finding.OWN_ID_IN_USE, Verdict.READ_BACK, errors.OwnIdElsewhereError, _OWN_ID),
    _by_finding("key elsewhere", Finding.KEY_ELSEWHERE, Verdict.UNKNOWN, errors.KeyElsewhereError, _KEY),
    _by_finding(
        "result beside errors", Finding.RESULT_BESIDE_ERRORS, Verdict.UNKNOWN, errors.ContradictoryAnswerError, _LOOK
    ),
    _by_finding("database away", Finding.DATABASE_AWAY, Verdict.UNKNOWN, errors.DestinationFaultError, _DATABASE),
    _by_finding("not started", Finding.NOT_STARTED, Verdict.UNKNOWN, errors.DestinationRejectedError, _SCHEMA),
    _by_finding("inner fault", Finding.INNER_FAULT, Verdict.UNKNOWN, errors.DestinationFaultError, _SERVER_LOG),
    _by_finding("uniqueness", Finding.UNIQUENESS, Verdict.UNKNOWN, errors.UniquenessConflictError, _UNIQUE),
    _by_code("credential", {"AUTHENTICATION_REQUIRED", "TOKEN_EXPIRED"}, errors.CredentialRejectedError, _TOKEN),
    _by_code("permission", {"PERMISSION_DENIED"}, errors.PermissionRefusedError, _ROLE),
    _by_code(
        "branch",
        {"BRANCH_NOT_FOUND", "BRANCH_NEEDS_REBASE", "BRANCH_ALREADY_MERGED"},
        errors.BranchUnavailableError,
        _BRANCH,
    ),
    _by_code("merge", {"MERGE_IN_PROGRESS", "MERGE_RECOVERY_REQUIRED"}, errors.DestinationBusyError, _WAIT),
    _by_shape("any other errors", Shape.ERRORS, errors.DestinationRejectedError, _PLAN),
    _by_result("no result", Result.MISSING, errors.UnconfirmedWriteError, _LOOK),
    _by_result("not ok", Result.NOT_OK, errors.UnconfirmedWriteError, _LOOK),
    _by_result("no object in result", Result.NO_OBJECT, errors.UnconfirmedWriteError, _LOOK),
    _by_result("no id", Result.NO_ID, errors.UnconfirmedWriteError, _LOOK),
    _by_result("other id", Result.OTHER_ID, errors.OtherNodeError, _LOOK),
    _by_result("not looked at", Result.NONE, errors.UnconfirmedWriteError, _LOOK),
    _by_result("done", Result.DONE, None, "nothing"),
)


def advice_while_planning(row: Row) -> str:
    """What to do about an answer to a reading that makes a plan: nothing was written and no run exists yet."""
    return _WHILE_PLANNING.get(row.next_action, row.next_action)


@lru_cache(maxsize=1024)
def classify(seen: Observation) -> Row:
    """The row that speaks about what was seen."""
    return next(row for row in TABLE if row.matches(seen))
