"""Puts the application together: routes, errors, the gate in front, and the OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from fastapi.telemetry import TelemetryConfig
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response

from ledger.api import audit_routes, event_routes, object_routes, order_routes, reading_routes, status_routes
from ledger.api.callers import Callers
from ledger.api.gate import Gate, Pages
from ledger.api.limits import RateLimiter
from ledger.api.problems import MEDIA_TYPE, Problem, answer_errors
from ledger.api.rights import BASE, NOBODY_ASKED, RIGHTS, Address
from ledger.api.service import ApiService, answer_bytes, authorise
from ledger.api.sessions import Sessions
from ledger.store.tokens import TokenQueries

_PROBLEMS = {
    400: "a cursor of another list; an identity, a place, a note or a key that is none",
    401: "no token, or none that works",
    403: "the role does not have this right",
    404: "not there",
    405: "another method",
    409: "a conflict, named",
    413: "too large",
    415: "no JSON",
    422: "a parameter or a body that is not as documented",
    429: "too fast, or too much at once; see Retry-After",
    500: "a defect, or trouble of this installation",
    503: "the ledger cannot be reached; see Retry-After. An audit took too long",
}


NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""For every application here: FastAPI's own spans and logs would say what callers sent and what exceptions say, to
whatever a variable of OpenTelemetry names."""

PagesMaker = Callable[[ApiService, Callers], Pages]
"""Makes what answers people, over the same service and the same callers."""


def create_app(service: ApiService, tokens: TokenQueries | None, pages: PagesMaker | None = None) -> Gate:
    """The application over one ledger, behind its gate. What goes wrong in it leaves through the gate as well.

    Args:
        service: what the routes work with.
        tokens: where tokens are looked up; None for local mode, in which nobody is asked for one.
        pages: makes the pages for people; None for an API without them.
    """
    limits = service.limits
    callers = Callers(
        tokens=tokens,
        rates=RateLimiter(limits.requests_per_second, limits.burst),
        failures=RateLimiter(limits.failed_logins_per_minute / 60, max(10.0, limits.failed_logins_per_minute / 3)),
        metrics=service.metrics,
        sessions=Sessions(limits.session_hours * 3600),
        tls_in_front=limits.secure_cookies,
    )
    return Gate(
        _routed(service),
        pages=None if pages is None else pages(service, callers),
        callers=callers,
        limits=limits,
        metrics=service.metrics,
    )


def _routed(service: ApiService) -> FastAPI:
    app = FastAPI(
        title="apply-ledger",
        version=version("apply-ledger"),
        summary="What was applied to which destination, from which plan, by whom; and orders for its writers.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        dependencies=[Depends(authorise), Depends(_refuse_unknown_parameters)],
        redirect_slashes=False,
        telemetry=NO_TELEMETRY,
    )
    app.state.service = service
    answer_errors(app)
    routers = (
        reading_routes.router,
        object_routes.router,
        event_routes.router,
        audit_routes.router,
        order_routes.router,
        status_routes.router,
        _about(app),
    )
    for router in routers:
        app.include_router(router)
    app.state.routers = routers
    app.openapi = lambda: _document(app)  # type: ignore[method-assign] # how FastAPI wants it replaced
    limits = service.limits
    if limits.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(limits.cors_origins),
            allow_methods=["GET"],
            allow_headers=["Authorization", "If-None-Match", "Last-Event-ID"],
            expose_headers=["ETag", "Retry-After"],
        )
    return app


def _about(app: FastAPI) -> APIRouter:
    router = APIRouter(prefix=BASE, tags=["status"])

    @router.get("/openapi.json", response_model=dict[str, Any], summary="This document")
    async def openapi(request: Request) -> Response:
        """Every address with its parameters, answers and roles."""
        return answer_bytes(request, json.dumps(app.openapi()).encode())

    return router


def _refuse_unknown_parameters(request: Request) -> None:
    """A parameter that an address does not know is refused: whoever sends it believes that it does something.

    Raises:
        RequestValidationError: naming each.
    """
    path = request.scope["route"].path
    if not request.query_params or not path.startswith(BASE):
        return
    parameters = _document(request.app)["paths"][path][request.method.lower()].get("parameters", ())
    known = {parameter["name"] for parameter in parameters if parameter["in"] == "query"}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise RequestValidationError([{"loc": ("query", name), "msg": "no such parameter"} for name in unknown])


def addresses(app: FastAPI) -> list[Address]:
    """Method and path of every route."""
    routes = [route for router in app.state.routers for route in router.routes]
    return [(method, route.path) for route in routes if isinstance(route, APIRoute) for method in route.methods or ()]


def _document(app: FastAPI) -> dict[str, Any]:
    """What FastAPI makes of the routes, with problem documents for every error and the roles of each address."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes, tags=app.openapi_tags
        )
        schemas = document["components"]["schemas"]
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(problem.pop("$defs", {}))
        schemas["Problem"] = problem
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for method, path in addresses(app):
            _describe(document["paths"][path][method.lower()], (method, path))
        app.openapi_schema = document
    return app.openapi_schema


def _describe(operation: dict[str, Any], address: Address) -> None:
    for parameter in operation.get("parameters", ()):
        # What may be left out is no null: on the wire that would be the text "null".
        kinds = parameter["schema"].pop("anyOf", [])
        parameter["schema"] |= next((kind for kind in kinds if kind.get("type") != "null"), {})
    problem = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status, words in _PROBLEMS.items():
        if str(status) not in operation["responses"] or status == 422:
            operation["responses"][str(status)] = {"description": words, "content": problem}
    if address[0] == "GET" and address[1] not in NOBODY_ASKED:
        operation["responses"]["304"] = {"description": "as the sender has it (If-None-Match)"}
    roles = sorted(RIGHTS.get(address, ()))
    if address[1] in NOBODY_ASKED:
        operation["security"] = []
    else:
        operation["security"] = [{"token": []}]
        operation["x-roles"] = roles
