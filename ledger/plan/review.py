"""Reviewing a saved plan: read it, print it at two depths, or give it out as a document (A80, A85, C39, C49)."""

from __future__ import annotations

from ledger.plan.review_document import review_document
from ledger.plan.review_ledger import LastWriter, LedgerWords
from ledger.plan.review_origin import EndpointCount, PlanOrigin
from ledger.plan.review_render import render_review
from ledger.plan.saved_plan import PlanSummary, Resource, SavedPlan, read_saved_plan

__all__ = [
    "EndpointCount",
    "LastWriter",
    "LedgerWords",
    "PlanOrigin",
    "PlanSummary",
    "Resource",
    "SavedPlan",
    "read_saved_plan",
    "render_review",
    "review_document",
]
