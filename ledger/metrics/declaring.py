"""How a metric is declared, and the only place where one is made.

A metric that is in no declaration cannot be made, so the table is complete: documentation and alert rules are checked
against it. Every label takes its values from a set that is bounded (:data:`LABELS`); no label ever names a run, an
operation or an object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_NO_CHOICE: tuple[str, ...] = ()


class Kind(StrEnum):
    """The type of a metric, as Prometheus names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Process(StrEnum):
    """Which command shows a metric at ``/metrics``."""

    WORK = "work"
    SERVE = "serve"


@dataclass(frozen=True, slots=True)
class Label:
    """A label and what bounds the number of its values.

    Attributes:
        name: as in a series.
        bound: what it is a value of, in words.
        values: all of them, where they are known beforehand; their series then exist from the start, with 0.
    """

    name: str
    bound: str
    values: tuple[str, ...] = _NO_CHOICE


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: without the ``_total`` of a counter.
        kind: its type.
        help: one sentence, as ``# HELP`` shows it.
        shown_by: the commands that show it.
        labels: in order.
        buckets: of a histogram, in seconds.
    """

    name: str
    kind: Kind
    help: str
    shown_by: tuple[Process, ...]
    labels: tuple[Label, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names of the labels, in order."""
        return tuple(label.name for label in self.labels)

    @property
    def shown_name(self) -> str:
        """The name by which it is queried; of a histogram, the one that its three series begin with."""
        return f"{self.name}_total" if self.kind is Kind.COUNTER else self.name

    @property
    def series(self) -> tuple[str, ...]:
        """The names of its series."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(f"{self.name}_{part}" for part in ("bucket", "count", "sum"))
        return (self.shown_name,)

    def known_values(self) -> Iterator[tuple[str, ...]]:
        """Each combination of label values that is known beforehand; nothing where a label has others."""
        if all(label.values for label in self.labels):
            yield from product(*(label.values for label in self.labels))


class Meters:
    """The metrics of one process, in a registry of their own."""

    def __init__(self, declared: Sequence[Metric]) -> None:
        """``declared``: what this process may make."""
        self.registry = CollectorRegistry()
        self._declared = frozenset(declared)

    def counter(self, metric: Metric) -> Counter:
        """The counter that a declaration describes."""
        made = Counter(metric.name, metric.help, metric.label_names, registry=self._registry_for(metric, Kind.COUNTER))
        for values in metric.known_values():
            if values:
                made.labels(*values)
        return made

    def gauge(self, metric: Metric) -> Gauge:
        """The gauge that a declaration describes."""
        return Gauge(metric.name, metric.help, metric.label_names, registry=self._registry_for(metric, Kind.GAUGE))

    def histogram(self, metric: Metric) -> Histogram:
        """The histogram that a declaration describes."""
        registry = self._registry_for(metric, Kind.HISTOGRAM)
        return Histogram(metric.name, metric.help, metric.label_names, registry=registry, buckets=metric.buckets)

    def _registry_for(self, metric: Metric, kind: Kind) -> CollectorRegistry:
        if metric not in self._declared or metric.kind is not kind:
            raise LookupError(f"{metric.name} is not declared as a {kind} of this process")
        return self.registry
