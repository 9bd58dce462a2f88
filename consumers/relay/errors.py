"""Errors that prevent events from being published."""

from __future__ import annotations

from typing import ClassVar

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode


class RelayError(ApplyLedgerError):
    """Base of the relay's errors. The cursor is after what the brokers have acknowledged."""


class EventsNotSentError(RelayError):
    """The brokers did not acknowledge a batch; it is sent again, and readers recognise repeats by their position."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class RelayedElsewhereError(RelayError):
    """The log does not continue the events on the topic: it is another log, or an older copy of it."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED
