"""What the API counts, for Prometheus. No label names a run, an operation or an object."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class ApiMetrics:
    """The counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "apply_ledger_http_requests",
            "Requests that were answered, by address and status.",
            ("method", "address", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "apply_ledger_http_request_seconds",
            "How long an answer took; event streams are left out.",
            ("method", "address"),
            registry=self.registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 10.0),
        )
        self.refused_tokens = Counter(
            "apply_ledger_authentication_failures", "Requests with a token that does not work.", registry=self.registry
        )
        self.rate_limited = Counter(
            "apply_ledger_rate_limited_requests", "Requests that came too fast.", registry=self.registry
        )
        self.streams = Gauge("apply_ledger_event_streams", "Event streams that are open.", registry=self.registry)
        self.streamed = Counter(
            "apply_ledger_streamed_events", "Events that were sent to streams.", registry=self.registry
        )
        self.slow_readers = Counter(
            "apply_ledger_slow_stream_readers", "Streams that ended because nobody read them.", registry=self.registry
        )
