"""Spans: how long a commit, its intake, its run, each operation and each request took, joined under one trace.

Off unless a tracer is set (:func:`use`): then nothing of OpenTelemetry is even imported, and a span costs a
comparison. On or off, a span never decides anything: one that cannot be made, told of or ended is left out, and what it
was to be about goes on. Nothing that a plan or a destination says is in one, so that no secret can: ids, kinds and
numbers alone.

The trace context goes from process to process as W3C text (``traceparent``): in the commit, and in each request to the
destination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal, TypeVar

import structlog

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as TracedSpan
    from opentelemetry.trace import Tracer

_log = structlog.get_logger(__name__)
T = TypeVar("T")
Kind = Literal["internal", "server", "client", "producer", "consumer"]
Attributes = Mapping[str, str | int]

TRACEPARENT = "traceparent"
"""The header, and the field of a commit."""

_tracer: Tracer | None = None


def use(tracer: Tracer | None) -> None:
    """Make spans with this tracer from now on; None makes none. For the whole process."""
    global _tracer
    _tracer = tracer


def is_on() -> bool:
    """Whether spans are made."""
    return _tracer is not None


class Span:
    """A span under way, or nothing if none is made."""

    __slots__ = ("_span",)

    def __init__(self, span: TracedSpan | None = None) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        """What a process or server needs to make spans below this one; None if there is none."""
        context = None if self._span is None else _attempted("asked", self._span.get_span_context)
        if context is None or not context.is_valid:
            return None
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"

    def headers(self) -> dict[str, str]:
        """The same as a header of a request; none if there is nothing to say."""
        traceparent = self.traceparent
        return {} if traceparent is None else {TRACEPARENT: traceparent}

    def tell(self, name: str, value: str | int) -> None:
        """Add what is known only now."""
        made = self._span
        if made is not None:
            _attempted("told of", lambda: made.set_attribute(name, value))

    def failed(self, why: str) -> None:
        """Mark it as failed. ``why`` is a name, never a message: messages quote foreign text."""
        made = self._span
        if made is not None:
            from opentelemetry.trace import Status, StatusCode

            _attempted("marked", lambda: made.set_status(Status(StatusCode.ERROR, why)))


_NONE: AbstractContextManager[Span] = nullcontext(Span())


def span(
    name: str,
    *,
    parent: str | None = None,
    kind: Kind = "internal",
    attributes: Attributes | None = None,
    beside: bool = False,
) -> AbstractContextManager[Span]:
    """A span around a block; spans that are made in the block, or in tasks that it starts, are below it.

    Args:
        name: one of few: it groups.
        parent: the trace context of another process. None, or one that is no trace context: the span around this
            block, or a new trace.
        kind: whether it is one side of a call between processes.
        attributes: ids, kinds and numbers.
        beside: one of several around the same block, each about something of its own: nothing comes below it, and
            without a parent it is a new trace, never below another of them.
    """
    tracer = _tracer
    return _NONE if tracer is None else _around(tracer, name, parent, kind, attributes, beside)


@contextmanager
def _around(
    tracer: Tracer, name: str, parent: str | None, kind: Kind, attributes: Attributes | None, beside: bool
) -> Iterator[Span]:
    made = _attempted("made", lambda: _started(tracer, name, parent, kind, attributes, beside))
    if made is None:
        yield Span()
        return
    from opentelemetry.context import attach, detach
    from opentelemetry.trace import set_span_in_context

    found = Span(made)
    token = None if beside else _attempted("entered", lambda: attach(set_span_in_context(made)))
    try:
        yield found
    except BaseException as exc:
        found.failed(type(exc).__name__)
        raise
    finally:
        if token is not None:
            _attempted("left", lambda: detach(token))
        _attempted("ended", made.end)


def _started(
    tracer: Tracer, name: str, parent: str | None, kind: Kind, attributes: Attributes | None, beside: bool
) -> TracedSpan:
    from opentelemetry.context import Context
    from opentelemetry.trace import SpanKind

    context = _context_of(parent)
    if context is None and beside:
        context = Context()
    return tracer.start_span(name, context=context, kind=SpanKind[kind.upper()], attributes=dict(attributes or {}))


def _attempted(what: str, work: Callable[[], T]) -> T | None:
    """What ``work`` returns, or None where it raised: then the span lacks that, and nothing else does."""
    try:
        return work()
    except Exception as exc:  # noqa: BLE001 - samplers and processors are others' code; a write must not depend on them
        _log.warning(f"a span could not be {what}", why=type(exc).__name__)
        return None


def _context_of(parent: str | None) -> Context | None:
    """The context that a trace parent names; None, which is the present one, where it names none."""
    if parent is None:
        return None
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    context = TraceContextTextMapPropagator().extract({TRACEPARENT: parent})
    return context if get_current_span(context).get_span_context().is_valid else None
