"""What an audit raises."""

from __future__ import annotations

from typing import ClassVar

from ledger.errors import ApplyLedgerError, RefusalGroup
from ledger.exit_codes import ExitCode


class LedgerTamperedError(RefusalGroup):
    """The ledger is not what was appended to it; every finding is named."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class UnknownBindingToVerifyError(ApplyLedgerError):
    """No such binding in this ledger: there is nothing that could be verified."""


class NeverWrittenError(ApplyLedgerError):
    """No operation on such an object has an outcome in this ledger."""


class PlanOfRunMissingError(ApplyLedgerError):
    """A run has outcomes, and the plan that they are outcomes of is not stored."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class NoteUnreadableError(ApplyLedgerError):
    """A file is no signed note, or its text is no checkpoint."""


class KeyUnreadableError(ApplyLedgerError):
    """A key's name, text or file cannot be used."""


class KeyExistsError(ApplyLedgerError):
    """A key of this name is there, and a key is never overwritten."""


class NoSigningKeyError(ApplyLedgerError):
    """There is no private key to sign a checkpoint with."""


class NoTrustedKeyError(ApplyLedgerError):
    """A checkpoint cannot be checked without a public key that is known to be genuine."""


class NoteNotTrustedError(ApplyLedgerError):
    """A note that was given has no signature of a key that was given: it says nothing of the ledger, good or bad."""


class CheckpointRefusedError(ApplyLedgerError):
    """Nothing was signed: the log does not extend what was signed before, or a checkpoint of ours was changed."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class NothingToSignError(ApplyLedgerError):
    """A log without an event has no head that could be signed."""


class NoteContradictsError(ApplyLedgerError):
    """A signed note would take the place of one that says something else of the same position; both are evidence."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class CheckpointOfNoBindingError(ApplyLedgerError):
    """A signed head is of a binding that is not among those that are verified."""

    exit_code: ClassVar[ExitCode] = ExitCode.TAMPERED


class ExportExistsError(ApplyLedgerError):
    """The folder of an export is not empty."""


class ExportUnreadableError(ApplyLedgerError):
    """A folder is no export, or is one that was not written to its end."""


class OperationNotProvableError(ApplyLedgerError):
    """There is no such operation, or nothing was ever recorded about it."""


class NoCheckpointForProofError(ApplyLedgerError):
    """No signed head covers what is to be proven."""


class ProofUnreadableError(ApplyLedgerError):
    """A file is no proof."""
