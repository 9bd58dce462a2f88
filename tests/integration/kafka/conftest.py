"""A topic of the real broker for each test, and a ledger."""

from __future__ import annotations

from tests.field_failures.broker.conftest import inbox, topic

__all__ = ["inbox", "topic"]
