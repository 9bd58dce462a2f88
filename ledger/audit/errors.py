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
