"""An Infrahub that tells of itself over a real socket: version, time, account, rights, branch and schema.

Answers are worded as a real server of version 1.11 gives them; what a test wants to be otherwise is a field.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from tests.support.lab_schema import lab_document

TOKEN = "canary-77d1-token-of-the-doctor"
CERTIFICATE = Path(__file__).with_name("localhost.pem")

_WRONG_TOKEN = {
    "data": None,
    "errors": [{"message": "Invalid token", "extensions": {"code": "AUTHENTICATION_REQUIRED", "http_status": 401}}],
}


@dataclass
class TellingInfrahub:
    """What the server tells. ``rights`` are decisions by kind; a kind without one may do everything."""

    port: int = 0
    scheme: str = "http"
    version: str = "1.11.9"
    behind: timedelta = timedelta()
    account: dict[str, Any] | None = field(
        default_factory=lambda: {"display_label": "Writer", "status": {"value": "active"}}
    )
    global_rights: list[tuple[str, int]] = field(default_factory=lambda: [("edit_default_branch", 6)])
    rights: dict[str, dict[str, str]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=lambda: {"main": "OPEN", "lab1": "OPEN"})
    knows_accounts: bool = True
    tells_date: bool = True
    idle: float | None = None
    """Seconds after which an idle connection is closed."""
    schema_document: dict[str, Any] = field(default_factory=lab_document)
    headers: str = ""
    requests: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def writes(self) -> list[str]:
        """Documents that are no queries; a doctor sends none."""
        bodies = [json.loads(sent.split(b"\r\n\r\n", 1)[1]) for sent in self.requests if sent.startswith(b"POST ")]
        return [body["query"] for body in bodies if not body["query"].startswith("query ")]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError, TimeoutError):
            while not writer.is_closing():
                request = await asyncio.wait_for(_request(reader), self.idle)
                self.requests.append(request)
                status, document = self._answer(request)
                writer.write(self._response(status, document))
                await writer.drain()
        writer.close()

    def _response(self, status: int, document: Any) -> bytes:
        body = json.dumps(document).encode()
        date = format_datetime(datetime.now(UTC) - self.behind, usegmt=True)
        headers = f"date: {date}\r\n{self.headers}" if self.tells_date else self.headers
        return f"HTTP/1.1 {status} X\r\n{headers}content-length: {len(body)}\r\n\r\n".encode() + body

    def _answer(self, request: bytes) -> tuple[int, Any]:
        path = request.split(b" ", 2)[1].decode()
        if path == "/api/config":
            return 200, {"main": {}}
        if f"x-infrahub-key: {TOKEN}".encode() not in request.lower():
            return 401, _WRONG_TOKEN
        if path == "/api/info":
            return 200, {"version": self.version, "deployment_id": "18ecb9e2-8117-f06d-e36f-168f17cdee2f"}
        if path.startswith("/api/schema"):
            return 200, self.schema_document
        branch = path.removeprefix("/graphql/")
        if branch not in self.branches:
            return 404, {"errors": [f"Branch: {branch} not found."]}
        return 200, self._data(json.loads(request.split(b"\r\n\r\n", 1)[1]), branch)

    def _data(self, body: dict[str, Any], branch: str) -> Any:
        text = body["query"]
        if "AccountProfile" in text:
            if not self.knows_accounts:
                message = "Cannot query field 'AccountProfile' on type 'Query'."
                return {"data": None, "errors": [{"message": message}]}
            return {"data": {"AccountProfile": self.account}}
        if "InfrahubPermissions" in text:
            nodes = [{"node": {"action": action, "decision": str(flag)}} for action, flag in self.global_rights]
            return {"data": {"InfrahubPermissions": {"global_permissions": {"edges": nodes}}}}
        if "Branch(" in text:
            row = {"name": branch, "status": self.branches[branch], "is_default": branch == "main"}
            return {"data": {"Branch": [row]}}
        if "permissions" in text:
            return {"data": {key: self._permissions(kind) for key, kind in re.findall(r"(k\d+): (\w+)", text)}}
        return {"data": {"__typename": "Query"}}

    def _permissions(self, kind: str) -> dict[str, Any]:
        node = {"kind": kind, "view": "ALLOW", "create": "ALLOW", "update": "ALLOW"} | self.rights.get(kind, {})
        return {"permissions": {"edges": [{"node": node}]}}


async def _request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


@asynccontextmanager
async def telling_infrahub(*, tls: bool = False, **told: Any) -> AsyncIterator[TellingInfrahub]:
    """Serve one until the block ends."""
    state = TellingInfrahub(**told)
    context = None
    if tls:
        state.scheme, context = "https", ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
    server = await asyncio.start_server(state.serve, "127.0.0.1", 0, ssl=context)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
