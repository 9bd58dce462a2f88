"""Spans inside one process: what is below what, what they say, and that nothing depends on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import httpx
import pytest
from infrahub_sdk.types import HTTPMethod
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import NoOpTracer, SpanContext

from consumers.infrahub.exchange import FailedExchange
from consumers.infrahub.transport import PooledTransport
from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger import spans
from ledger.cli.tracing import exported_spans, is_wanted
from ledger.commit_message import encode_commit
from ledger.store.records import MessagePlace
from tests.support.committed_plans import BINDING, tag
from tests.support.scripted_destination import refused
from tests.support.scripted_infrahub import URL, Guard, ScriptedInfrahub, graphql, lab_settings
from tests.support.writer_bench import Bench

_COMMIT = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    spans.use(provider.get_tracer("tests"))
    yield exporter
    spans.use(None)
    provider.shutdown()


def _named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def _above(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def _context(span: ReadableSpan) -> SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def _trace_ids(found: Sequence[ReadableSpan]) -> set[str]:
    return {f"{_context(span).trace_id:032x}" for span in found}


async def test_a_run_is_below_its_commit_and_each_operation_below_the_run(
    bench: Bench, exporter: InMemorySpanExporter
) -> None:
    bench.commit([tag("a"), tag("b")], commit={"traceparent": _COMMIT})
    assert (await bench.drain()).ending == "run.applied"
    (run,) = _named(exporter, "apply")
    operations = _named(exporter, "create")
    assert _above(run) == int("b" * 16, 16)
    assert [_above(span) for span in operations] == [_context(run).span_id] * 2
    assert _trace_ids(exporter.get_finished_spans()) == {"a" * 32}
    assert all(span.end_time is not None and span.status.is_unset for span in (run, *operations))


async def test_what_fails_is_marked_by_name_and_says_nothing_of_the_answer(
    bench: Bench, exporter: InMemorySpanExporter
) -> None:
    operations = bench.commit([tag("a")], commit={"traceparent": _COMMIT})
    bench.destination.answers[operations[0].operation_id] = [refused()]
    assert (await bench.drain()).ending == "run.failed"
    (run,), (operation,) = _named(exporter, "apply"), _named(exporter, "create")
    assert (run.status.description, operation.events) == ("run.failed", ())
    assert operation.status.description == type(refused()).__name__
    assert refused().next_action not in run.to_json() + operation.to_json()


async def test_a_resumed_run_is_in_the_trace_of_its_commit(bench: Bench, exporter: InMemorySpanExporter) -> None:
    operations = bench.commit([tag("a")], commit={"traceparent": _COMMIT})
    bench.destination.answers[operations[0].operation_id] = [refused()]
    await bench.drain()
    bench.ledger.resume("run-1", by="grace", reason="fixed")
    assert (await bench.drain()).ending == "run.applied"
    assert len(_named(exporter, "apply")) == 2
    assert _trace_ids(exporter.get_finished_spans()) == {"a" * 32}


@pytest.mark.parametrize("parent", [None, "", "00-zz", "00-" + "0" * 32 + "-" + "b" * 16 + "-01", "x" * 100_000])
async def test_a_commit_without_a_usable_trace_context_begins_a_trace(
    bench: Bench, exporter: InMemorySpanExporter, parent: str | None
) -> None:
    bench.commit([tag("a")], commit={"traceparent": parent})
    assert (await bench.drain()).ending == "run.applied"
    (run,) = _named(exporter, "apply")
    assert _above(run) is None
    assert len(_trace_ids(exporter.get_finished_spans())) == 1


class _Inbox:
    async def register_binding(self, _: object) -> int:
        return 1

    async def submit_commit(self, _: int, commit: object) -> object:
        return commit

    async def submit_commits(self, _: int, commits: Sequence[object]) -> list[object]:
        with spans.span("inside"):
            return list(commits)


def _received(bench: Bench, run_id: str) -> ReceivedMessage:
    message = encode_commit(bench.commit_of(run_id))
    return ReceivedMessage(MessagePlace("plan-commits", 0, 0), message.key, message.value, message.headers)


async def test_the_intake_is_below_the_commit_that_it_takes(bench: Bench, exporter: InMemorySpanExporter) -> None:
    bench.commit([tag("a")], commit={"traceparent": _COMMIT})
    inbox: Any = _Inbox()
    assert await MessageTaker(inbox, [BINDING]).take(_received(bench, "run-1")) is not None
    (intake,) = _named(exporter, "intake")
    assert (_above(intake), _trace_ids([intake])) == (int("b" * 16, 16), {"a" * 32})
    assert intake.attributes == {"apply_ledger.run_id": "run-1"}


async def test_commits_that_are_taken_together_stay_in_their_own_traces(
    bench: Bench, exporter: InMemorySpanExporter
) -> None:
    """The second and the fourth say nothing of a trace, and are not below the first for that."""
    parents = {"run-1": _COMMIT, "run-2": None, "run-3": _COMMIT.replace("a", "c"), "run-4": "no trace context"}
    for run_id, parent in parents.items():
        bench.commit([tag("a")], run_id=run_id, commit={"traceparent": parent})
    inbox: Any = _Inbox()
    with spans.span("outer"):
        received = await MessageTaker(inbox, [BINDING]).take_together([_received(bench, run_id) for run_id in parents])
    assert len(received) == 4
    by_run = {str((span.attributes or {})["apply_ledger.run_id"]): span for span in _named(exporter, "intake")}
    above = {run_id: _above(span) for run_id, span in by_run.items()}
    assert above == {"run-1": int("b" * 16, 16), "run-2": None, "run-3": int("b" * 16, 16), "run-4": None}
    (outer,), (inside,) = _named(exporter, "outer"), _named(exporter, "inside")
    traces = [_trace_ids([span]).pop() for span in (*by_run.values(), outer)]
    assert len(set(traces)) == 5
    assert {"a" * 32, "c" * 32} < set(traces)
    assert _above(inside) == _context(outer).span_id


async def _sent(answer: httpx.Response) -> str | None:
    """The header of one request that is answered so."""
    server = ScriptedInfrahub()
    server.will_answer(answer)
    transport = PooledTransport(lab_settings(), guard=Guard(), deadline=5, factory=server.new_transport)
    try:
        await transport(f"{URL}/graphql/main", HTTPMethod.POST, {}, 5, {"query": "query Q { x }"})
    finally:
        await transport.aclose()
    (request,) = server.requests
    header: str | None = request.headers.get("traceparent")
    return header


async def test_a_request_carries_its_own_span_and_no_header_without_one(exporter: InMemorySpanExporter) -> None:
    with spans.span("outer"):
        header = await _sent(graphql({"data": {}}))
    (request,), (outer,) = _named(exporter, "request"), _named(exporter, "outer")
    context = _context(request)
    assert header == f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
    assert _above(request) == _context(outer).span_id
    spans.use(None)
    assert await _sent(graphql({"data": {}})) is None


async def test_a_failed_request_leaves_its_span_ended_and_marked(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(FailedExchange):
        await _sent(graphql({"errors": []}, status=500))
    (request,) = _named(exporter, "request")
    assert request.status.description == "FailedExchange"


def test_a_tracer_that_makes_nothing_adds_nothing_to_a_request() -> None:
    spans.use(NoOpTracer())
    try:
        with spans.span("one") as span:
            assert (span.traceparent, span.headers()) == (None, {})
    finally:
        spans.use(None)


async def test_code_of_others_that_breaks_a_span_breaks_nothing_else(bench: Bench) -> None:
    class Broken(Sampler):
        def should_sample(self, *_: object, **__: object) -> NoReturn:
            raise OSError("a sampler of somebody's")

        def get_description(self) -> str:
            return "broken"

    provider = TracerProvider(sampler=Broken(), shutdown_on_exit=False)
    spans.use(provider.get_tracer("tests"))
    try:
        bench.commit([tag("a")], commit={"traceparent": _COMMIT})
        assert (await bench.drain()).ending == "run.applied"
    finally:
        spans.use(None)
        provider.shutdown()


class _Breaking(SpanProcessor):
    """A processor of somebody's that raises where spans begin or end."""

    def __init__(self, where: str) -> None:
        self.raised = 0
        self._where = where

    def on_start(self, *_: object, **__: object) -> None:
        self._raise_at("start")

    def on_end(self, *_: object) -> None:
        self._raise_at("end")

    def _raise_at(self, where: str) -> None:
        if where == self._where:
            self.raised += 1
            raise OSError("a processor of somebody's")


@pytest.mark.parametrize("where", ["start", "end"])
@pytest.mark.rules("G4")
async def test_g04_a_processor_that_raises_ends_no_run(bench: Bench, where: str) -> None:
    breaking = _Breaking(where)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(breaking)
    spans.use(provider.get_tracer("tests"))
    try:
        operations = bench.commit([tag("a"), tag("b")], commit={"traceparent": _COMMIT})
        bench.destination.answers[operations[1].operation_id] = [refused()]
        assert (await bench.drain()).ending == "run.failed"
        kinds = bench.ledger.kinds("run-1")
        assert (kinds.count("operation.applied"), kinds.count("operation.failed")) == (1, 1)
    finally:
        spans.use(None)
    assert breaking.raised >= 3


@pytest.mark.parametrize("broken", ["set_attribute", "set_status", "get_span_context"])
async def test_a_span_that_cannot_be_told_or_asked_breaks_nothing(
    exporter: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def breaks(*_: object) -> NoReturn:
        raise OSError("a span of somebody's")

    monkeypatch.setattr(SdkSpan, broken, breaks)
    with pytest.raises(LookupError, match="what is to be told"), spans.span("one") as span:
        span.tell("number", 1)
        assert (span.headers() == {}) is (broken == "get_span_context")
        raise LookupError("what is to be told")
    assert broken == "get_span_context" or len(_named(exporter, "one")) == 1


@pytest.mark.parametrize(
    ("variables", "wanted"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_SDK_DISABLED": "True"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_spans_are_made_where_a_collector_is_named_and_not_switched_off(
    variables: dict[str, str], wanted: bool
) -> None:
    assert is_wanted(variables) is wanted


def test_variables_that_name_code_are_taken_away_and_nothing_is_on_without_a_collector() -> None:
    environ = {"OTEL_PROPAGATORS": "no such thing", "OTEL_PYTHON_CONTEXT": "none", "PATH": "/bin"}
    with exported_spans(environ):
        assert (environ, spans.is_on()) == ({"PATH": "/bin"}, False)


def test_a_span_costs_no_object_where_none_is_made() -> None:
    assert spans.span("one") is spans.span("other", attributes={"number": 1})
    with spans.span("one") as span:
        span.tell("number", 1)
        span.failed("why")
        assert (span.traceparent, span.headers()) == (None, {})
