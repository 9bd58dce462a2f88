"""What the service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.metadata import version

from consumers.progress import RecordedEvents, WriterObserver, WriterProgress
from ledger.binding import DestinationBinding
from ledger.events import NewEvent
from ledger.metrics import table
from ledger.metrics.declaring import Meters, Process
from ledger.metrics.ledger_state import LedgerStateMetrics
from ledger.metrics.table import metrics_of

_OUTCOMES = {f"operation.{outcome}": outcome for outcome in table.OPERATION_OUTCOME.values}
_ENDINGS = {"plan.refused": "refused"} | {
    f"run.{ending}": ending for ending in table.ENDING.values if ending != "refused"
}


class ServiceMetrics:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        meters = Meters(metrics_of(Process.WORK))
        self.registry = meters.registry
        self.ledger_state = LedgerStateMetrics(meters)
        self.messages = meters.counter(table.INTAKE_MESSAGES)
        self.relayed = meters.counter(table.RELAY_EVENTS)
        self.relay_position = meters.gauge(table.RELAY_POSITION)
        self.lease_held = meters.gauge(table.LEASE_HELD)
        self.run_operations = meters.gauge(table.RUN_OPERATIONS)
        self.settling = meters.gauge(table.SETTLING)
        self.operations = meters.counter(table.OPERATIONS)
        self.runs = meters.counter(table.RUNS)
        self.part_up = meters.gauge(table.PART_UP)
        self.part_restarts = meters.counter(table.PART_RESTARTS)
        meters.gauge(table.BUILD_INFO).labels(version("apply-ledger")).set(1)

    def observer(self, binding: DestinationBinding) -> WriterObserver:
        """Shows where the writer of one binding is."""
        names = (binding.url, binding.branch)
        self.settling.labels(*names).set(0)

        def observe(progress: WriterProgress) -> None:
            if progress.phase in ("applying", "ended"):
                self.run_operations.labels(*names, "done").set(progress.done)
                self.run_operations.labels(*names, "total").set(progress.total)
            self.settling.labels(*names).set(progress.seconds if progress.phase in ("settling", "taking_over") else 0)

        return observe

    def recorder(self, binding: DestinationBinding) -> RecordedEvents:
        """Counts the outcomes and endings that the writer of one binding has recorded."""
        names = (binding.url, binding.branch)
        outcomes = {kind: self.operations.labels(*names, outcome) for kind, outcome in _OUTCOMES.items()}
        endings = {kind: self.runs.labels(*names, ending) for kind, ending in _ENDINGS.items()}
        counters = outcomes | endings

        def count(events: Sequence[NewEvent]) -> None:
            for event in events:
                counter = counters.get(event.kind)
                if counter is not None:
                    counter.inc()

        return count

    def relayed_batch(self, url: str, branch: str, count: int, position: int) -> None:
        """Counts a batch of the relay."""
        self.relayed.labels(url, branch).inc(count)
        self.relay_position.labels(url, branch).set(position)

    def part_restarted(self, part: str) -> None:
        """Counts a restart of a part of the service."""
        self.part_restarts.labels(part).inc()

    def show_held(self, serves: Iterable[DestinationBinding], held: Iterable[DestinationBinding]) -> None:
        """Which of the served bindings this process writes now."""
        mine = set(held)
        for binding in serves:
            self.lease_held.labels(binding.url, binding.branch).set(binding in mine)
