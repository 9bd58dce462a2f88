"""A destination that tells everything it was sent: a proxy before the sandbox, whose errors hold the credential."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

Echo = Callable[[str], tuple[int, bytes]]
"""From a token to the status and the body of an answer."""


def in_errors(*messages: str) -> tuple[int, bytes]:
    return _errors(*({"message": message} for message in messages))


def _errors(*errors: dict[str, Any]) -> tuple[int, bytes]:
    return 200, json.dumps({"data": None, "errors": errors}).encode()


def _every_spelling(token: str) -> tuple[int, bytes]:
    basic = base64.b64encode(f"admin:{token}".encode()).decode()
    messages = [
        f"headers were {{'X-INFRAHUB-KEY': '{token}', 'accept': '*/*'}}",
        f"Authorization: Basic {basic}",
        f"GET /graphql?token={quote(token, safe='')}",
        f"https://u:{token}@host/",
        json.dumps(json.dumps({"key": token})),
        "".join(f"&#{ord(letter)};" for letter in token),
    ]
    return _errors(*({"message": message, "extensions": {"code": token}} for message in messages))


def _node_id(token: str) -> tuple[int, bytes]:
    return 200, json.dumps({"data": {"LabTagUpsert": {"ok": True, "object": {"id": token}}}}).encode()


def _traceback(token: str) -> tuple[int, bytes]:
    return 500, f"Traceback (most recent call last):\n  key = '{token}'\nKeyError: {token!r}".encode()


ECHOES: dict[str, Echo] = {
    "every spelling": _every_spelling,
    "across the cut": lambda token: in_errors("x" * 1990 + token + "y" * 900),
    "traceback": _traceback,
    "node id": _node_id,
}


class EchoingDestination:
    """Passes requests on; ``echo`` answers mutations instead; ``hold`` keeps them until it is released.

    Attributes:
        tokens: what came as a credential, each once.
        passed: how many requests reached the sandbox.
    """

    def __init__(self, sandbox_url: str) -> None:
        self.echo: Echo | None = None
        self.held = threading.Event()
        self.hold: threading.Event | None = None
        self.tokens: set[str] = set()
        self.answered = 0
        self._client = httpx.Client(base_url=sandbox_url, trust_env=False, timeout=60)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.hold is not None:
            self.hold.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._client.close()

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """Serve one request."""
        token = headers.get("x-infrahub-key", "")
        self.tokens.add(token)
        is_mutation = b'"query":"mutation' in body
        if is_mutation and self.hold is not None:
            self.held.set()
            self.hold.wait(60)
        if is_mutation and self.echo is not None:
            self.answered += 1
            return self.echo(token)
        passed = {name: value for name, value in headers.items() if name in ("content-type", "x-infrahub-key")}
        answer = self._client.request(method, path, headers=passed, content=body)
        return answer.status_code, answer.content

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        destination = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._serve("GET")

            def do_POST(self) -> None:
                self._serve("POST")

            def _serve(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                try:
                    status, answer = destination.answer(method, self.path, headers, body)
                    self.send_response(status)
                    self.send_header("content-length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)
                except (httpx.HTTPError, ConnectionError, RuntimeError):
                    self.close_connection = True  # the client or the test has left

            def log_message(self, *arguments: Any) -> None:
                """Nothing on stderr."""

        return Handler
