"""One real broker for all of these tests, topics of their own for each."""

from __future__ import annotations

from tests.field_failures.broker.conftest import inbox, kafka, topic

__all__ = ["inbox", "kafka", "topic"]
