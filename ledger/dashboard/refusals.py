"""Every refusal as a page, in the words of the command line; a page for each kind of trouble."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ledger.api.errors import (
    DefectError,
    InvalidRequestError,
    MethodNotAllowedError,
    UnauthenticatedError,
    not_there,
)
from ledger.api.problems import problem_of
from ledger.api.statuses import headers_of, status_of
from ledger.api.tokens import without_tokens
from ledger.dashboard.addresses import MAX_ADDRESS, address_of, own_address, page_of
from ledger.dashboard.pages import PageMaker
from ledger.dashboard.templating import href
from ledger.errors import ApplyLedgerError

_log = structlog.get_logger(__name__)
_TITLES: Mapping[int, str] = {
    401: "Log in",
    403: "No right to this",
    404: "Not found",
    409: "Refused",
    429: "Too fast",
    503: "The ledger cannot be reached",
}


def answer_errors(app: FastAPI) -> None:
    """Let every error of the pages leave as a page."""
    app.add_exception_handler(ApplyLedgerError, _refusal)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _defect)


def refusal_page(maker: PageMaker, request: Request, error: ApplyLedgerError) -> Response:
    """The answer to a request that is refused: a page, the part of one that htmx asked for, or the way to log in."""
    if isinstance(error, UnauthenticatedError):
        return _to_login(request)
    status = status_of(error)
    if status >= 500:
        _log.warning("a page could not be made", path=without_tokens(request.url.path), error=str(error))
    page: HTMLResponse = maker.page(
        request,
        "refusal.html",
        fragment="_refusal.html",
        title=_TITLES.get(status, "An error" if status >= 500 else HTTPStatus(status).phrase),
        status=status,
        headers={"Cache-Control": "no-store"} | headers_of(error),
        problem=problem_of(error, request.url.path),
        sent=request.method == "POST",
    )
    return page


def _to_login(request: Request) -> Response:
    """To where one logs in; the page that somebody was at is where they come back to."""
    if request.headers.get("hx-request") == "true":
        here = page_of(request.headers.get("hx-current-url", ""))
        return Response(status_code=401, headers={"HX-Redirect": _login(here)})
    return RedirectResponse(_login(address_of(request) if request.method == "GET" else "/"), status_code=303)


def _login(here: str) -> str:
    """The address of the form. What it would not lead back to is left out: it must be there all the same."""
    there = own_address(without_tokens(here))
    return href("/login", next=there if there != "/" and len(there) <= MAX_ADDRESS else None)


def _maker(request: Request) -> PageMaker:
    maker: PageMaker = request.app.state.maker
    return maker


async def _refusal(request: Request, error: Exception) -> Response:
    if not isinstance(error, ApplyLedgerError):
        raise error
    return refusal_page(_maker(request), request, error)


async def _invalid(request: Request, error: Exception) -> Response:
    """What pydantic found, without the value (G12)."""
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    named = sorted({f"{'.'.join(str(part)[:64] for part in fault['loc'][1:])}: {fault['msg']}" for fault in faults})
    return refusal_page(
        _maker(request),
        request,
        InvalidRequestError(
            checked="the parameters of this page",
            expected="those that it has",
            found="; ".join(named[:20]),
            next_action="correct the named part of the address or the form",
        ),
    )


async def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    if status == 405:
        refusal: ApplyLedgerError = MethodNotAllowedError(
            checked=f"the method {request.method[:16]}",
            expected="one that this page takes",
            found="another one",
            next_action="begin at the overview",
        )
    elif status == 404:
        refusal = not_there("this address", "begin at the overview")
    else:
        refusal = InvalidRequestError(
            checked="the request", expected="one that can be read", found="one that cannot", next_action="send it again"
        )
    return refusal_page(_maker(request), request, refusal)


async def _defect(request: Request, error: Exception) -> Response:
    """The traceback goes to the log; the page says nothing that the error may hold."""
    _log.error("a defect", path=without_tokens(request.url.path), error=type(error).__name__)
    return refusal_page(
        _maker(request),
        request,
        DefectError(
            checked="this page",
            expected="a page, or a named refusal",
            found="a defect of this program",
            next_action="look at the server's log, and report what it says",
        ),
    )
