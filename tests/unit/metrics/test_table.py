"""Every metric is declared in one table: the processes show no other, and the page says what the table says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from consumers.service.metrics import ServiceMetrics
from ledger.api.metrics import ApiMetrics
from ledger.metrics import table
from ledger.metrics.declaring import Kind, Label, Meters, Metric, Process
from ledger.metrics.table import METRICS, metrics_of
from tests.support.log_events_document import modules_with
from tests.support.metrics_document import PAGE, render


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_the_table_has_every_declaration_once_and_names_are_well_formed() -> None:
    declared = [value for value in vars(table).values() if isinstance(value, Metric)]
    assert sorted(declared, key=lambda m: m.name) == sorted(METRICS, key=lambda m: m.name)
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"apply_ledger(_[a-z]+)+", metric.name), metric.name
        assert not metric.name.endswith(("_total", "_bucket", "_count", "_sum")), metric.name
        assert metric.help.endswith("."), metric.name
        assert (metric.kind is Kind.HISTOGRAM) == bool(metric.buckets), metric.name


@pytest.mark.parametrize(
    ("process", "registry"),
    [(Process.WORK, lambda: ServiceMetrics().registry), (Process.SERVE, lambda: ApiMetrics().registry)],
    ids=["work", "serve"],
)
def test_a_process_makes_every_metric_that_the_table_gives_it_and_no_other(process: Process, registry: object) -> None:
    assert callable(registry)
    made = registry()
    assert isinstance(made, CollectorRegistry)
    shown = {(family.name, family.type, family.documentation) for family in made.collect()}
    assert shown == {(metric.name, str(metric.kind), metric.help) for metric in metrics_of(process)}


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "prometheus_client":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Import) and any(alias.name.startswith("prometheus_client") for alias in node.names):
            yield "prometheus_client"


def test_nothing_but_the_table_s_own_module_makes_metrics() -> None:
    harmless = {"CONTENT_TYPE_LATEST", "generate_latest"}
    elsewhere = {
        path.name: names
        for path, tree in modules_with("prometheus_client")
        if path.name != "declaring.py" and (names := set(_imports(tree)) - harmless)
    }
    assert elsewhere == {}


def test_a_metric_that_another_process_shows_or_of_another_type_cannot_be_made() -> None:
    meters = Meters(metrics_of(Process.SERVE))
    with pytest.raises(LookupError, match="apply_ledger_lease_held"):
        meters.gauge(table.LEASE_HELD)
    with pytest.raises(LookupError, match="apply_ledger_audits"):
        meters.counter(table.AUDITS)


def test_series_whose_labels_are_known_exist_before_anything_happened() -> None:
    """A rate over a series that appears with its first event would miss that event."""
    counted = {
        tuple(sample.labels.values())
        for family in ServiceMetrics().registry.collect()
        for sample in family.samples
        if sample.name == "apply_ledger_intake_messages_total"
    }
    assert counted == {("taken",), ("repeated",), ("refused",)}


def test_the_known_values_are_every_combination() -> None:
    left, right = Label("a", "", ("1", "2")), Label("b", "", ("x",))
    metric = Metric("apply_ledger_x", Kind.COUNTER, "X.", (Process.WORK,), (left, right))
    assert list(metric.known_values()) == [("1", "x"), ("2", "x")]
    assert (
        list(Metric("apply_ledger_x", Kind.GAUGE, "X.", (Process.WORK,), (left, Label("c", ""))).known_values()) == []
    )


def test_what_is_shown_is_read_by_prometheus_own_parser() -> None:
    families = list(text_string_to_metric_families(generate_latest(ApiMetrics().registry).decode()))
    names = {sample.name for family in families for sample in family.samples}
    unlabelled = {name for metric in metrics_of(Process.SERVE) if not metric.labels for name in metric.series}
    assert unlabelled <= names
