"""What the service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge

from consumers.progress import WriterObserver, WriterProgress
from ledger.binding import DestinationBinding

_BINDING = ("url", "branch")


class ServiceMetrics:
    """The counters of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.messages = Counter(
            "apply_ledger_intake_messages",
            "Messages of the topic of commits that were handled.",
            ("outcome",),
            registry=self.registry,
        )
        self.relayed = Counter(
            "apply_ledger_relay_events", "Events that the brokers acknowledged.", _BINDING, registry=self.registry
        )
        self.relay_position = Gauge(
            "apply_ledger_relay_position", "Position up to which the topic holds the log.", _BINDING,
            registry=self.registry,
        )  # fmt: skip
        self.lease_held = Gauge(
            "apply_ledger_lease_held", "1 while this process is the writer of a binding.", _BINDING,
            registry=self.registry,
        )  # fmt: skip
        self.operations = Gauge(
            "apply_ledger_run_operations", "Operations of the current run: with an outcome (done), all (total).",
            (*_BINDING, "which"), registry=self.registry,
        )  # fmt: skip
        self.settling = Gauge(
            "apply_ledger_settling_seconds", "Seconds of quiet after a lost answer, as it began.", _BINDING,
            registry=self.registry,
        )  # fmt: skip
        self.part_up = Gauge(
            "apply_ledger_part_up", "1 while a part of the service runs.", ("part",), registry=self.registry
        )
        self.part_restarts = Gauge(
            "apply_ledger_part_restarts", "How often a part was started again.", ("part",), registry=self.registry
        )
        for outcome in ("taken", "repeated", "refused"):
            self.messages.labels(outcome)

    def observer(self, binding: DestinationBinding) -> WriterObserver:
        """Counts what the writer of one binding tells."""
        names = (binding.url, binding.branch)
        self.settling.labels(*names).set(0)

        def observe(progress: WriterProgress) -> None:
            if progress.phase in ("applying", "ended"):
                self.operations.labels(*names, "done").set(progress.done)
                self.operations.labels(*names, "total").set(progress.total)
            self.settling.labels(*names).set(progress.seconds if progress.phase in ("settling", "taking_over") else 0)

        return observe

    def relayed_batch(self, url: str, branch: str, count: int, position: int) -> None:
        """Counts a batch of the relay."""
        self.relayed.labels(url, branch).inc(count)
        self.relay_position.labels(url, branch).set(position)

    def show_held(self, serves: Iterable[DestinationBinding], held: Iterable[DestinationBinding]) -> None:
        """Which of the served bindings this process writes now."""
        mine = set(held)
        for binding in serves:
            self.lease_held.labels(binding.url, binding.branch).set(binding in mine)
