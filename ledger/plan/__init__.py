"""The plan artifact: format, writer, reader, verification, review.

The names below are the public surface (A80). They are loaded when first asked for: most users need one module, and
verification and review bring pyarrow and rich with them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ledger.plan.model import PlanManifest, PlannedOperation, RelationshipReference, SourceSnapshotRecord
    from ledger.plan.saved_plan import PlanSummary, SavedPlan, read_saved_plan
    from ledger.plan.verify import VerificationFailure

__all__ = [
    "PlanManifest",
    "PlanSummary",
    "PlannedOperation",
    "RelationshipReference",
    "SavedPlan",
    "SourceSnapshotRecord",
    "VerificationFailure",
    "read_saved_plan",
]

_HOME = {
    "PlanManifest": "model",
    "PlanSummary": "saved_plan",
    "PlannedOperation": "model",
    "RelationshipReference": "model",
    "SavedPlan": "saved_plan",
    "SourceSnapshotRecord": "model",
    "VerificationFailure": "verify",
    "read_saved_plan": "saved_plan",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
