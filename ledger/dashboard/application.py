"""Puts the pages together: routers, rights, errors, templates."""

from __future__ import annotations

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ledger.api.application import NO_TELEMETRY
from ledger.api.callers import Callers
from ledger.api.rights import Address, require_right
from ledger.api.service import ApiService
from ledger.dashboard import (
    assets,
    event_pages,
    inbox_pages,
    object_pages,
    order_pages,
    overview_pages,
    run_pages,
    session_pages,
    verification_pages,
    worker_pages,
)
from ledger.dashboard.pages import PageMaker, address_in_table
from ledger.dashboard.refusals import answer_errors, refusal_page
from ledger.dashboard.rights import OPEN, PAGE_RIGHTS
from ledger.dashboard.templating import new_environment
from ledger.errors import ApplyLedgerError

ROUTERS: tuple[APIRouter, ...] = (
    assets.router,
    session_pages.router,
    overview_pages.router,
    run_pages.router,
    order_pages.router,
    object_pages.router,
    inbox_pages.router,
    verification_pages.router,
    worker_pages.router,
    event_pages.router,
)


class Dashboard:
    """All pages over one ledger. Satisfies :class:`ledger.api.gate.Pages`."""

    def __init__(self, service: ApiService, callers: Callers) -> None:
        files = assets.Assets()
        self._maker = PageMaker(service, callers, new_environment(files))
        self._app = FastAPI(
            openapi_url=None,
            docs_url=None,
            redoc_url=None,
            dependencies=[Depends(_authorise)],
            redirect_slashes=False,
            telemetry=NO_TELEMETRY,
        )
        self._app.state.service = service
        self._app.state.maker = self._maker
        self._app.state.assets = files
        answer_errors(self._app)
        for router in ROUTERS:
            self._app.include_router(router)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request that came through the gate."""
        await self._app(scope, receive, send)

    def is_open(self, path: str) -> bool:
        """Whether a path is answered to who did not log in."""
        return path == "/login" or path.startswith(assets.PREFIX)

    def refused(self, error: ApplyLedgerError, scope: Scope) -> Response:
        """The page of a request that the gate refuses."""
        return refusal_page(self._maker, Request(scope), error)


def page_addresses() -> list[Address]:
    """Method and path of every page and form."""
    return [
        (method, str(getattr(route, "path", "")))
        for router in ROUTERS
        for route in router.routes
        for method in sorted(getattr(route, "methods", None) or ())
    ]


def _authorise(request: Request) -> None:
    """Refuse what the caller's role may not see; is in front of every route.

    Raises:
        ForbiddenError: it may not.
    """
    address = address_in_table(request)
    if address[1] not in OPEN:
        require_right(request.scope["caller"], address, PAGE_RIGHTS)
