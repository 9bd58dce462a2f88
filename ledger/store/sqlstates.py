"""The one table from SQLSTATE to exception class, and the translation of driver errors.

asyncpg has no class for states of our own (``LG...``), so everything is told apart by ``sqlstate``, never by the
driver's class. ``DETAIL`` of our own states is JSON and becomes ``facts``. The tests compare the table with ``sql/``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import asyncpg

from ledger.store import errors
from ledger.store.errors import StoreError


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a state means: its class, what was expected, what to do next."""

    error: type[StoreError]
    expected: str
    next_action: str


_ALARM = "stop the writers of this binding, run 'apply-ledger verify', and find out who wrote the other content"
_ASK_AGAIN = "try again; if it fails again, check the database server's log"
_DEFECT = "this is a defect of the calling program; report it with the text of this error"

OWN_STATES: Mapping[str, Meaning] = {
    "LG001": Meaning(
        errors.FencedWriterError,
        "the owner and epoch that hold the binding",
        "nothing was appended; let the process that holds the binding continue, or restart the writer",
    ),
    "LG002": Meaning(errors.EpochMovedError, "the epoch that was read before the claim", "claim again"),
    "LG003": Meaning(
        errors.LeaseHeldError, "a free lease", "wait until it is released or runs out, or leave the run to that process"
    ),
    "LG004": Meaning(errors.EventConflictError, "the content of the first time under a known event id", _ALARM),
    "LG005": Meaning(
        errors.HeadMismatchError, "the head that the caller believes in", "read the binding again, then decide again"
    ),
    "LG006": Meaning(errors.QuietPeriodError, "that earlier requests have settled", "wait for the seconds named"),
    "LG007": Meaning(errors.BodyTooLargeError, "a body of at most 256 KiB", "shorten it, or store its list as detail"),
    "LG008": Meaning(errors.TooManyEventsError, "at most 500 events in one append", "append in several calls"),
    "LG009": Meaning(errors.KindNotAllowedError, "a kind that this function appends", _DEFECT),
    "LG010": Meaning(errors.UnknownBindingError, "a registered binding", "commit a plan for this destination first"),
    "LG011": Meaning(
        errors.AppendOnlyError, "that what is written stays as it is", "record a new fact instead; find out who tried"
    ),
    "LG012": Meaning(
        errors.CommitConflictError,
        "the content that was committed first",
        "let the first commit finish, or make and commit a fresh plan",
    ),
    "LG013": Meaning(
        errors.RunChecksumConflictError,
        "the plan with which this run was committed",
        "the run's files were changed after the commit; make and commit a fresh plan",
    ),
    "LG014": Meaning(
        errors.PolicyConflictError,
        "the policy with which this run was committed",
        "stop the run, then resume it with the other policy",
    ),
    "LG015": Meaning(
        errors.UnknownRunError,
        "a run that was committed on this binding",
        "`apply-ledger runs` lists them; or commit this one",
    ),
    "LG016": Meaning(
        errors.RunFinishedError,
        "a run that has not ended",
        "`apply-ledger runs show RUN` tells how it ended; one that was not applied is continued by `apply-ledger resume"
        " RUN`, and what an applied one lacks needs a fresh plan",
    ),
    "LG017": Meaning(
        errors.RunStillOpenError,
        "a run that has ended and has no open order",
        "leave it to its writer; where none runs, `apply-ledger apply` with the same plan (or `work`) continues it",
    ),
    "LG018": Meaning(
        errors.OrderConflictError,
        "an open order with this content",
        "leave it to the open order, which `apply-ledger runs show RUN` shows; or stop the run, then order it anew",
    ),
    "LG019": Meaning(errors.PlanConflictError, "the plan that the checksum names", _ALARM),
    "LG020": Meaning(errors.ArtifactConflictError, "the artifact that was stored first", _ALARM),
    "LG021": Meaning(errors.InvalidCallError, "arguments that belong together", _DEFECT),
    "LG022": Meaning(errors.DoubtDroppedError, "that a mark is moved with the outcome of what it marked", _DEFECT),
    "LG023": Meaning(
        errors.RunUnderWriterError, "a run that was never committed here", "leave the run to its writer, or stop it"
    ),
    "LG024": Meaning(
        errors.MessageConflictError,
        "the message that was refused from this place before",
        "find out whether the topic was recreated; an intake that starts again needs a topic with another name",
    ),
    "LG025": Meaning(errors.RelayHeldError, "a relay that is free", "leave it to the process that relays now"),
    "LG026": Meaning(
        errors.RelayFencedError, "the claim that holds the relay", "nothing: the process that holds it now continues"
    ),
    "LG027": Meaning(errors.RelayCursorError, "a place further on in this very log", _ALARM),
    "LG030": Meaning(
        errors.TokenNameTakenError,
        "a name that no other token that works has",
        "choose another name, or revoke the token that has it: `apply-ledger token list`",
    ),
}

_EXCHANGED = Meaning(
    errors.ExchangedSessionError,
    "a session of one's own, in which a prepared statement stays",
    "let the DSN lead to PostgreSQL itself, to a pooler in session mode, or to one in transaction mode that keeps"
    " prepared statements",
)

STANDARD_STATES: Mapping[str, Meaning] = {
    "22P02": Meaning(errors.BodyRefusedError, "a JSON object", _DEFECT),
    "22P05": Meaning(errors.BodyRefusedError, "text without U+0000", "escape the text before it is recorded"),
    "22021": Meaning(errors.BodyRefusedError, "UTF-8 text without U+0000", "escape the text before it is recorded"),
    "23502": Meaning(errors.ConstraintRefusedError, "a value in each required column", _DEFECT),
    "23503": Meaning(errors.ConstraintRefusedError, "an existing row", _DEFECT),
    "23505": Meaning(errors.DuplicateFactError, "a fact that is recorded once", _ALARM),
    "23514": Meaning(errors.ConstraintRefusedError, "a value that the tables' rules allow", _DEFECT),
    "25006": Meaning(
        errors.LedgerUnavailableError, "a server that takes writes", "connect to the primary, not to a replica"
    ),
    "25P03": Meaning(errors.LedgerUnavailableError, "a transaction that may go on", _ASK_AGAIN),
    "25P04": Meaning(errors.LedgerUnavailableError, "a transaction that may go on", _ASK_AGAIN),
    "26000": _EXCHANGED,
    "28000": Meaning(errors.LedgerPermissionError, "a role that may connect", "check the DSN and the role's password"),
    "28P01": Meaning(errors.LedgerPermissionError, "the role's password", "check the DSN and the role's password"),
    "3D000": Meaning(errors.LedgerUnavailableError, "a database that exists", "create it, or correct the DSN"),
    "3F000": Meaning(errors.NotMigratedError, "the schema ledger", "run 'apply-ledger migrate'"),
    "40001": Meaning(errors.LedgerBusyError, "no conflict with another transaction", _ASK_AGAIN),
    "40P01": Meaning(errors.LedgerBusyError, "no deadlock with another transaction", _ASK_AGAIN),
    "42501": Meaning(
        errors.LedgerPermissionError,
        "a role with the right to do this",
        "use the login of a service (ledger_writer and ledger_projector granted to its role); an auditor's role only"
        " reads, and needs none of them",
    ),
    "42883": Meaning(errors.NotMigratedError, "this program's database functions", "run 'apply-ledger migrate'"),
    "42P05": _EXCHANGED,
    "42P01": Meaning(errors.NotMigratedError, "this program's tables", "run 'apply-ledger migrate'"),
    "53100": Meaning(errors.LedgerUnavailableError, "room on the server's disk", "free disk space, then try again"),
    "53300": Meaning(errors.LedgerUnavailableError, "a free connection slot", _ASK_AGAIN),
    "55P03": Meaning(errors.LedgerBusyError, "a lock that is free in time", _ASK_AGAIN),
    "57014": Meaning(errors.LedgerBusyError, "an answer within the server's time limit", _ASK_AGAIN),
    "57P01": Meaning(errors.LedgerUnavailableError, "a server that stays up", _ASK_AGAIN),
    "57P02": Meaning(errors.LedgerUnavailableError, "a server that stays up", _ASK_AGAIN),
    "57P03": Meaning(errors.LedgerUnavailableError, "a server that takes connections", _ASK_AGAIN),
    "57P05": Meaning(errors.LedgerUnavailableError, "a session that stays open", _ASK_AGAIN),
}

_UNKNOWN = Meaning(errors.UnexpectedDatabaseError, "an answer that this program knows", _DEFECT)
_CONNECTION = Meaning(errors.LedgerUnavailableError, "a connection that stays open", _ASK_AGAIN)

CLASSES: Mapping[str, Meaning] = {
    "08": _CONNECTION,
    "53": Meaning(
        errors.LedgerUnavailableError,
        "a server with memory, disk and connections to spare",
        "check the database server's log, add the missing resources, then run the command again",
    ),
    "57": Meaning(errors.LedgerUnavailableError, "a server that its operator lets run", _ASK_AGAIN),
    "58": Meaning(
        errors.LedgerUnavailableError,
        "a server that can read and write its files",
        "check the database server's log and its disk, then run the command again",
    ),
    "XX": Meaning(
        errors.UnexpectedDatabaseError,
        "a server whose files are whole",
        "stop the writers and look at the database server's log; its files may be damaged",
    ),
}
"""By the first two characters, for states that are not listed: trouble of the server is no defect of a program."""

_TRANSIENT = frozenset(
    {"25P03", "25P04", "40001", "40P01", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "57P05"}
)


_UNTOLD = frozenset({"owner"})
"""Facts that stay out of messages and logs: together with the epoch, an owner would be the right to write."""

DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
"""Everything that the driver and the network can raise."""


def is_transient(error: BaseException) -> bool:
    """Whether asking again with the same ids can help: the server or the way to it was in trouble, not the call.

    No state of our own is transient, so fencing and conflicts are never retried.
    """
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return state in _TRANSIENT or state.startswith("08")
    if isinstance(error, asyncpg.ClientConfigurationError):
        return False
    if isinstance(error, asyncpg.InterfaceError):
        return True
    return isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError)


def translated(error: BaseException, *, doing: str) -> StoreError:
    """The store's error for one of the driver's. ``doing`` says what was asked of the database."""
    if not isinstance(error, asyncpg.PostgresError):
        return _build(
            _CONNECTION, doing, f"{type(error).__name__}: {error}" if str(error) else type(error).__name__, {}
        )
    state = error.sqlstate or ""
    meaning = OWN_STATES.get(state) or STANDARD_STATES.get(state) or CLASSES.get(state[:2], _UNKNOWN)
    facts = _facts(error) if state in OWN_STATES else _constraint(error)
    # DETAIL of standard states may quote values; it is left out of the text (G12).
    told = ", ".join(f"{name} {_shown(value)}" for name, value in facts.items() if name not in _UNTOLD)
    said = str(error.args[0]) if error.args else state
    # Our own messages say it all; a state of the server's is what its manual and a search find.
    found = (said if state in OWN_STATES else f"{said} [{state}]") + (f" ({told})" if told else "")
    return _build(meaning, doing, found, facts)


def _shown(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _build(meaning: Meaning, doing: str, found: str, facts: Mapping[str, Any]) -> StoreError:
    return meaning.error(
        checked=doing, expected=meaning.expected, found=found, next_action=meaning.next_action, facts=facts
    )


def _facts(error: Any) -> dict[str, Any]:
    try:
        facts = json.loads(error.detail or "{}")
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _constraint(error: Any) -> dict[str, Any]:
    return {"constraint": error.constraint_name} if error.constraint_name else {}
