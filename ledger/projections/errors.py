"""Refusals of the projections."""

from __future__ import annotations

from typing import ClassVar

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode


class ProjectionError(ApplyLedgerError):
    """Base of everything that can keep a projection from following the log."""


class UnreadableBodyError(ProjectionError):
    """An event's body does not have the shape of its kind: this program did not write it."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class UnreadableDocumentError(ProjectionError):
    """A document of a projection is not one that this program writes; projections can be thrown away (G9)."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class ProjectionCollisionError(ProjectionError):
    """Another process moves the same cursor."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class RebuildBusyError(ProjectionError):
    """Another process is rebuilding the projections of this database."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class ProjectionDriftedError(ProjectionError):
    """The log does not continue where the projection stopped: a restored backup, or an edited log."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED
