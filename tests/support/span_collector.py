"""A collector of spans, as processes send them over HTTP: it keeps what it gets, for a test to look at."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class CollectedSpan:
    """One span of one process."""

    service: str
    process: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    failed: str
    attributes: dict[str, str | int]


@dataclass
class SpanCollector:
    """What came in, and where to send it."""

    port: int = 0
    spans: list[CollectedSpan] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    """The bodies of all requests, to look for what must not be in them."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def named(self, name: str) -> list[CollectedSpan]:
        return [span for span in self.spans if span.name == name]

    def take(self, body: bytes) -> None:
        self.raw.append(body)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            about = {item.key: item.value.string_value for item in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [
                    CollectedSpan(
                        about["service.name"],
                        about["service.instance.id"],
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.status.message,
                        {item.key: item.value.string_value or item.value.int_value for item in span.attributes},
                    )
                    for span in scope.spans
                ]


@contextmanager
def span_collector(status: int = 200) -> Iterator[SpanCollector]:
    """A collector on a free port that answers with ``status``."""
    collected = SpanCollector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if status == 200:
                collected.take(body)
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collected.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield collected
        finally:
            server.shutdown()
            thread.join()
