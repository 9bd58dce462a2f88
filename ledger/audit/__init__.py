"""Auditing: replay what was written, verify that it is what was appended."""

from ledger.audit.errors import LedgerTamperedError, UnknownBindingToVerifyError
from ledger.audit.replay import replay_record
from ledger.audit.report import Level, LevelReport, Status, VerifyReport
from ledger.audit.verify import verify_binding

__all__ = [
    "LedgerTamperedError",
    "Level",
    "LevelReport",
    "Status",
    "UnknownBindingToVerifyError",
    "VerifyReport",
    "replay_record",
    "verify_binding",
]
