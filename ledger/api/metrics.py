"""What the API counts, for Prometheus. No label names a run, an operation or an object."""

from __future__ import annotations

from importlib.metadata import version

from ledger.metrics import table
from ledger.metrics.declaring import Meters, Process
from ledger.metrics.ledger_state import LedgerStateMetrics
from ledger.metrics.table import metrics_of


class ApiMetrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        meters = Meters(metrics_of(Process.SERVE))
        self.registry = meters.registry
        self.ledger_state = LedgerStateMetrics(meters, with_projections=True)
        self.requests = meters.counter(table.HTTP_REQUESTS)
        self.seconds = meters.histogram(table.HTTP_SECONDS)
        self.refused_tokens = meters.counter(table.AUTHENTICATION_FAILURES)
        self.rate_limited = meters.counter(table.RATE_LIMITED)
        self.streams = meters.gauge(table.EVENT_STREAMS)
        self.streamed = meters.counter(table.STREAMED_EVENTS)
        self.slow_readers = meters.counter(table.SLOW_READERS)
        self.audits = meters.gauge(table.AUDITS)
        self.ended_audits = meters.counter(table.ENDED_AUDITS)
        meters.gauge(table.BUILD_INFO).labels(version("apply-ledger")).set(1)
