"""Sends spans to the collector that the variables of OpenTelemetry name; without one, no spans are made.

The variables are those of the specification (``OTEL_EXPORTER_OTLP_ENDPOINT`` and the others), read by OpenTelemetry's
own SDK. Whatever is in them, a command does what it would do without: spans that cannot be set up, or that nobody
takes, are left out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

import structlog

from ledger import spans
from ledger.event_loop import start_thread

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_log = structlog.get_logger(__name__)

SERVICE = "apply-ledger"
_SERVICE_NAME = "service.name"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_CHOOSE_CODE = (
    "OTEL_PROPAGATORS",
    "OTEL_PYTHON_CONTEXT",
    "OTEL_PYTHON_TRACER_PROVIDER",
    "OTEL_PYTHON_METER_PROVIDER",
    "OTEL_PYTHON_LOGGER_PROVIDER",
)
"""Variables that name code to be loaded. With one that nobody knows, libraries that only look at OpenTelemetry, as the
HTTP server's does, cannot even be imported. What we send is W3C's in any case."""

_LEAVE_WITHIN = 3.0
"""Seconds for the last spans of a command: the limit for a collector that does not answer."""


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether a collector is named and spans were not switched off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        return False
    return any(environ.get(name, "").strip() for name in _ENDPOINTS)


@contextmanager
def exported_spans(environ: MutableMapping[str, str]) -> Iterator[None]:
    """Spans of this block go to the collector that is named; without one, or without the extra, there are none.

    Args:
        environ: of this process; the variables that name code are taken out of it.
    """
    for name in _CHOOSE_CODE:
        environ.pop(name, None)
    provider = _provider() if is_wanted(environ) else None
    if provider is None:
        yield
        return
    spans.use(provider.get_tracer(SERVICE, version(SERVICE)))
    try:
        yield
    finally:
        spans.use(None)
        leaving = threading.Thread(target=provider.shutdown, name="last spans", daemon=True)
        with suppress(RuntimeError, MemoryError):  # no room for it: spans are lost, and nothing else
            start_thread(leaving)
            leaving.join(_LEAVE_WITHIN)


def _provider() -> TracerProvider | None:
    for handler in logging.getLogger().handlers:
        handler.addFilter(_in_a_line)
    try:
        return _built()
    except ImportError:
        _log.warning("a collector for spans is named, but apply-ledger[otlp] is not installed: none are sent")
    except Exception as exc:  # noqa: BLE001 - the SDK raises whatever a variable makes it; no command fails for that
        _log.warning("spans could not be set up: a variable that begins with OTEL_ is at fault", why=type(exc).__name__)
    return None


def _built() -> TracerProvider:
    """Imported here: it takes as long as a short command, and it reads variables that may hold anything."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create()
    if str(resource.attributes[_SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({_SERVICE_NAME: SERVICE}))  # a name that the operator gave stays
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _in_a_line(record: logging.LogRecord) -> bool:
    """What the SDK logs is trouble of spans alone; a traceback would look like a defect of the command."""
    if record.name.startswith("opentelemetry"):
        record.exc_info = record.exc_text = None
    return True
