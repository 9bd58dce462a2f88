"""Auditing: ask who wrote what and when, prove that the record is what was appended, take the proof elsewhere.

``history``, ``state`` and ``replay`` answer questions; ``verify``, ``checkpoint`` and ``publish`` make and check the
evidence; ``export`` and ``proof`` are evidence that needs neither this database nor this service.
"""

from ledger.audit.errors import LedgerTamperedError, UnknownBindingToVerifyError
from ledger.audit.heads import TrustedCheckpoint, trusted_checkpoint
from ledger.audit.history import ObjectHistory, object_history
from ledger.audit.publish import Published, publish_checkpoint
from ledger.audit.replay import replay_record
from ledger.audit.report import Break, Level, LevelReport, Status, VerifyReport
from ledger.audit.state import ObjectState, StateChange, asserted_states, state_changes
from ledger.audit.verify import verify_binding

__all__ = [
    "Break",
    "LedgerTamperedError",
    "Level",
    "LevelReport",
    "ObjectHistory",
    "ObjectState",
    "Published",
    "StateChange",
    "Status",
    "TrustedCheckpoint",
    "UnknownBindingToVerifyError",
    "VerifyReport",
    "asserted_states",
    "object_history",
    "publish_checkpoint",
    "replay_record",
    "state_changes",
    "trusted_checkpoint",
    "verify_binding",
]
