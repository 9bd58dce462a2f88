"""The sandbox as an ASGI application."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from consumers.infrahub.sandbox.access import Access
from consumers.infrahub.sandbox.admin import AdminRoutes
from consumers.infrahub.sandbox.execution import Engine
from consumers.infrahub.sandbox.faults import SandboxFaults
from consumers.infrahub.sandbox.graphql_endpoint import GraphQLEndpoint
from consumers.infrahub.sandbox.journal import Journal
from consumers.infrahub.sandbox.store import DEFAULT_BRANCH, SandboxStore, utc_now
from consumers.infrahub.sandbox.transport import TransportAccess

VERSION = "1.11.9"
"""The version of Infrahub whose answers are imitated; given out as the sandbox's own."""


class Sandbox:
    """One sandbox, an ASGI application, with the store, the faults and the journal behind it."""

    def __init__(
        self, store: SandboxStore, *, token: str, reader_token: str | None = None, version: str = VERSION
    ) -> None:
        self.store = store
        self.faults = SandboxFaults()
        self.journal = Journal()
        self._access = Access(token, reader_token)
        self._version = version
        endpoint = GraphQLEndpoint(Engine(store, version), self._access, self.faults, self.journal)
        admin = AdminRoutes(self._access, self.faults, self.journal)
        starlette = Starlette(
            routes=[
                Route("/graphql", endpoint, methods=["POST"]),
                Route("/graphql/{branch:path}", endpoint, methods=["POST"]),
                Route("/api/schema", self._schema, methods=["GET"]),
                Route("/api/schema/summary", self._summary, methods=["GET"]),
                Route("/api/config", self._config, methods=["GET"]),
                Route("/api/info", self._info, methods=["GET"]),
                *admin.routes(),
            ],
            exception_handlers={404: _no_route},
        )
        self._app: ASGIApp = TransportAccess(starlette)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection's event, as ASGI asks of an application."""
        await self._app(scope, receive, send)

    async def _schema(self, request: Request) -> Response:
        return self._of_a_branch(request) or JSONResponse({**self.store.model.document, "main": self._hashes["main"]})

    async def _summary(self, request: Request) -> Response:
        return self._of_a_branch(request) or JSONResponse(self._hashes)

    def _of_a_branch(self, request: Request) -> Response | None:
        """The refusal of a question about a branch; None where it is to be answered."""
        if self._access.credential(request) == "wrong":
            return _refused(401, "Invalid token")
        branch = request.query_params.get("branch", DEFAULT_BRANCH)
        return None if branch in self.store.branches else _refused(400, f"Branch: {branch} not found.")

    @cached_property
    def _hashes(self) -> Mapping[str, Any]:
        """As a server gives them: of the content, so another schema never has the same one."""
        document = self.store.model.document
        of_kinds = {part: {raw["kind"]: _hash(raw) for raw in document[part]} for part in ("nodes", "generics")}
        return {"main": _hash(of_kinds), **of_kinds}

    async def _config(self, _request: Request) -> Response:
        return JSONResponse({"main": {"docs_index_path": None}, "logging": {}, "analytics": {"enable": False}})

    async def _info(self, _request: Request) -> Response:
        return JSONResponse({"deployment_id": self.store.deployment_id, "version": self._version})


def create_app(
    schema_document: Mapping[str, Any],
    *,
    token: str,
    reader_token: str | None = None,
    seed: str | None = None,
    clock: Callable[[], datetime] = utc_now,
    version: str = VERSION,
) -> Sandbox:
    """The ASGI application of a sandbox for a schema document (the shape of ``GET /api/schema``).

    Raises:
        ConfigurationError: the document has not that shape.
    """
    store = SandboxStore(schema_document, seed=seed, clock=clock)
    return Sandbox(store, token=token, reader_token=reader_token, version=version)


def _hash(content: Any) -> str:
    return hashlib.md5(json.dumps(content, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def _no_route(request: Request, _error: Exception) -> Response:
    return _refused(404, f"The requested endpoint {request.url.path} does not exist")


def _refused(status: int, message: str) -> Response:
    error = {"message": message, "extensions": {"code": status}}
    return JSONResponse({"data": None, "errors": [error]}, status_code=status)
