"""Refusals of the store. Which SQLSTATE becomes which class stands in :mod:`ledger.store.sqlstates`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode


class StoreError(ApplyLedgerError):
    """Base of the store's refusals. ``facts`` holds what the database said, for programs."""

    def __init__(
        self,
        *,
        checked: str,
        expected: str,
        found: str,
        next_action: str,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(checked=checked, expected=expected, found=found, next_action=next_action)
        self.facts: Mapping[str, Any] = facts or {}


class AlarmError(StoreError):
    """Integrity alarm: cannot happen in normal operation; a person must investigate before the binding is used."""


class UnreadableValueError(AlarmError):
    """A stored value that no append can have written, such as a time after the year 9999."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class UnreadableCommitError(AlarmError):
    """A stored commit does not have the shape of a commit: nothing of this project writes such a one."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


# The writer's fence


class FencedWriterError(StoreError):
    """This writer no longer holds the binding; nothing was appended and nothing may be dispatched (G2)."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class LeaseHeldError(StoreError):
    """Another process holds the lease: who, since when, under which epoch, for how long still (FF32)."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class EpochMovedError(StoreError):
    """Another claim came between reading the epoch and claiming; asking again is safe."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class QuietPeriodError(StoreError):
    """An earlier request may still run in the destination; ``facts["seconds"]`` is what is left of the wait."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


# The log


class EventConflictError(AlarmError):
    """A known event id was appended again with other content, or together with other events (G7)."""


class DuplicateFactError(AlarmError):
    """A unique key refused a second record of one fact: one success for an operation, one outcome for an attempt."""


class HeadMismatchError(StoreError):
    """The chain has another head than the caller believes."""


class AppendOnlyError(AlarmError):
    """An attempt to change or delete a record (G8)."""


class BodyTooLargeError(StoreError):
    """An event body above 256 KiB; long lists belong into ``detail``."""


class TooManyEventsError(StoreError):
    """More than 500 events in one append."""


class BodyRefusedError(StoreError):
    """A body that is no JSON object, or holds what no reader could use (U+0000, a lone surrogate, NaN)."""


class ConstraintRefusedError(StoreError):
    """A value breaks a rule of the tables."""


class KindNotAllowedError(StoreError):
    """This kind of event is not appended by this function: outcomes and run starts need the lease."""


class UnknownBindingError(StoreError):
    """No binding has this id."""


class InvalidCallError(StoreError):
    """A function of the database was called in a way that cannot mean anything."""


class DoubtDroppedError(StoreError):
    """The in-flight mark would be moved without its outcome, or the outcome recorded without moving it (G4)."""


class RunUnderWriterError(StoreError):
    """Only the writer that holds the lease can end a committed run."""


# Orders


class CommitConflictError(StoreError):
    """A commit that came before, with other content."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class UnknownPositionError(StoreError):
    """A commit whose plan was made at a ledger position that this ledger has not reached: it was another one's."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class RunChecksumConflictError(StoreError):
    """This run was committed with another plan."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class PolicyConflictError(StoreError):
    """An open run was committed again with another policy."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class UnknownRunError(StoreError):
    """No such run was committed on this binding."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class RunFinishedError(StoreError):
    """The run has ended; there is nothing to resume or to stop."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class RunStillOpenError(StoreError):
    """The run is open; its writer goes on by itself."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


class MessageConflictError(AlarmError):
    """Another message was refused from the very same place of a topic; the broker's log is not what it was."""


class OrderConflictError(StoreError):
    """Another order stands in its place, or the order is in another state."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


# Tokens of the HTTP API


class TokenNameTakenError(StoreError):
    """Another token that works has this name."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


# Plans


class PlanConflictError(AlarmError):
    """Another plan under this checksum, or lines that are not what the checksum names."""


class ArtifactConflictError(AlarmError):
    """Another artifact is stored for this run."""


class PlanNotStoredError(StoreError):
    """No plan with this checksum is stored."""


# The server


class TransientStoreError(StoreError):
    """Base of the trouble of the database or of the way to it: the same call can succeed later."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class LedgerUnavailableError(TransientStoreError):
    """The database cannot be reached, or did not answer in time; a statement under way may have committed (FF33)."""


class LedgerBusyError(TransientStoreError):
    """A lock was not free in time; the statement was rolled back."""


class LedgerPermissionError(StoreError):
    """The database role lacks the right to do this: a mistake in the setup, or an attack."""


class UnsafeServerError(StoreError):
    """The server would lose committed events at a crash (``fsync``, ``full_page_writes``, ``synchronous_commit``)."""


class ExchangedSessionError(StoreError):
    """What a session prepared is gone: a pooler in transaction mode gives each transaction another one (FF32)."""


class UnexpectedDatabaseError(StoreError):
    """The database refused with a state that this program does not know."""


# Migrations


class MigrationError(StoreError):
    """Base of what can keep a database from being brought to this program's schema."""


class NotMigratedError(MigrationError):
    """The schema is not there, or older than this program."""


class NewerDatabaseError(MigrationError):
    """The database was migrated by a newer program."""


class EditedMigrationError(MigrationError):
    """A migration file was changed after it had been applied."""


class MigrationFileError(MigrationError):
    """A migration file has no usable name or header, or its number comes too late."""


class MigrationFailedError(MigrationError):
    """A migration file was refused by the database; it was rolled back whole."""


class PasswordRefusedError(MigrationError):
    """A password for a role that cannot be encoded without a choice of spelling."""


# The relay


class RelayHeldError(StoreError):
    """Another process relays this binding to this topic."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class RelayFencedError(StoreError):
    """This relay was taken over; its cursor is not moved by it any more."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class RelayCursorError(AlarmError):
    """A relay's cursor would go back, or onto an event that this log does not have."""
