"""Refusals of the intake, and errors that end it."""

from __future__ import annotations

from typing import ClassVar

from ledger.commit_message import MessageRefusedError
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode


class UndeclaredBindingError(MessageRefusedError):
    """The commit is for a destination that this service does not declare (FF27)."""


class IntakeDefectError(MessageRefusedError):
    """A defect of this program at a message; the message was recorded as refused and the defect was logged."""


class IntakeError(ApplyLedgerError):
    """Base of what ends an intake. Its offsets are not committed beyond what is durable."""


class BrokerUnavailableError(IntakeError):
    """No broker answered in time."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class MissingTopicError(IntakeError):
    """The topic of commits does not exist."""


class VanishedOffsetsError(IntakeError):
    """Messages were removed from the topic before they were read; continuing would silently skip plans (G10)."""


class IntakeStuckError(IntakeError):
    """The Kafka client has not returned from a poll for too long; only a new process helps."""
