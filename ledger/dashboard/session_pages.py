"""Logging in with a token, and out again."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi import Query as Parameters
from pydantic import Field
from starlette.responses import RedirectResponse, Response

from ledger.api.callers import address_of
from ledger.api.errors import UnauthenticatedError
from ledger.api.sessions import cookie_in, cookie_name
from ledger.dashboard.addresses import MAX_ADDRESS, own_address
from ledger.dashboard.pages import Maker, OwnForm, PageMaker, Query

router = APIRouter()


class LoginQuery(Query):
    """The address after the login."""

    next: Annotated[str, Field(max_length=MAX_ADDRESS)] = "/"


@router.get("/login")
async def login_page(request: Request, maker: Maker, query: Annotated[LoginQuery, Parameters()]) -> Response:
    """Asks for a token."""
    there = own_address(query.next)
    if maker.callers.tokens is None or await _is_logged_in(maker, request):
        return RedirectResponse(there, status_code=303)
    return _form(maker, request, there=there)


@router.post("/login")
async def login(
    request: Request,
    maker: Maker,
    token: Annotated[str, Form(max_length=1024)] = "",
    there: Annotated[str, Form(alias="next", max_length=MAX_ADDRESS)] = "/",
) -> Response:
    """Begins a session for the bearer of a token. The token itself goes into no cookie."""
    there = own_address(there)
    if maker.callers.tokens is None:
        return RedirectResponse(there, status_code=303)
    try:
        caller = await maker.callers.by_token(token.strip(), address_of(request.scope))
    except UnauthenticatedError:
        return _form(maker, request, there=there, refused=True)
    _end(maker, request)
    cookie, _ = maker.callers.sessions.begin(caller.token_id or "")
    response = RedirectResponse(there, status_code=303)
    _set_cookie(maker, request, response, cookie, int(maker.callers.sessions.seconds))
    return response


@router.post("/logout", dependencies=[OwnForm])
async def logout(request: Request, maker: Maker) -> Response:
    """Ends the session."""
    _end(maker, request)
    response = RedirectResponse("/login", status_code=303)
    _set_cookie(maker, request, response, "", 0)
    return response


def _form(maker: PageMaker, request: Request, *, there: str, refused: bool = False) -> Response:
    return maker.page(
        request,
        "login.html",
        title="Log in",
        status=401 if refused else 200,
        there=there,
        refused=refused,
        seconds=maker.callers.sessions.seconds,
    )


async def _is_logged_in(maker: PageMaker, request: Request) -> bool:
    """A link from another site brings no cookie (it is Strict); the page that it leads to asks again and brings it."""
    try:
        await maker.callers.of_person(request.scope, request.headers)
    except UnauthenticatedError:
        return False
    return True


def _end(maker: PageMaker, request: Request) -> None:
    before = cookie_in(request.headers.get("cookie", ""), secure=maker.callers.speaks_tls(request.scope))
    if before is not None:
        maker.callers.sessions.end(before)


def _set_cookie(maker: PageMaker, request: Request, response: Response, value: str, seconds: int) -> None:
    secure = maker.callers.speaks_tls(request.scope)
    response.set_cookie(
        cookie_name(secure=secure), value, max_age=seconds, path="/", secure=secure, httponly=True, samesite="strict"
    )
