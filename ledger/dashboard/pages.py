"""Makes pages: one template in one frame, or a part of it for htmx."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import Depends, Form, Request
from jinja2 import Environment
from pydantic import BaseModel, ConfigDict, model_validator
from starlette.responses import HTMLResponse

from ledger.api.callers import Callers
from ledger.api.rights import Address
from ledger.api.service import ApiService
from ledger.api.sessions import Session
from ledger.api.tokens import Caller, without_tokens
from ledger.dashboard.addresses import address_of, own_address
from ledger.dashboard.errors import ForeignFormError
from ledger.dashboard.rights import PAGE_RIGHTS, SEES_THE_RECORD

NAVIGATION: tuple[tuple[str, str], ...] = (
    ("/", "Overview"),
    ("/runs", "Runs"),
    ("/objects", "Objects"),
    ("/inbox", "Inbox"),
    ("/refused", "Refused"),
    ("/verification", "Verification"),
    ("/workers", "Workers"),
    ("/commit", "Commit"),
)
"""Address and name of what is at the top of every page, for who may see it."""


class Query(BaseModel):
    """Base of the parameters of a page. One that a page does not know is refused: it must not look like a filter.

    A field of a form that was left empty is sent as an empty text; it is as if it had not been sent.
    """

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if value != ""} if isinstance(given, Mapping) else given


@dataclass(frozen=True, slots=True)
class Frame:
    """What every template knows of the page that it is in."""

    title: str
    current: str
    address: str
    caller: Caller | None
    session: Session | None
    takes_orders: bool
    now: datetime

    def may(self, method: str, path: str) -> bool:
        """Whether who looks at it may ask for an address, as the table of rights has it."""
        return self.caller is not None and self.caller.role in PAGE_RIGHTS.get((method, path), ())

    @property
    def may_order(self) -> bool:
        """Whether who looks at it may give orders here."""
        return self.takes_orders and self.may("POST", "/commit")

    @property
    def sees_the_record(self) -> bool:
        """Whether who looks at it may read events, and with them the messages of a destination."""
        return self.caller is not None and self.caller.role in SEES_THE_RECORD

    @property
    def navigation(self) -> list[tuple[str, str]]:
        """What is at the top."""
        return [
            (path, name)
            for path, name in NAVIGATION
            if self.may("GET", path) and (self.takes_orders or path != "/commit")
        ]

    @property
    def form_key(self) -> str:
        """What every form has to bring along."""
        return "" if self.session is None else self.session.form_key


@dataclass(frozen=True, slots=True)
class PageMaker:
    """What the routes of pages work with."""

    service: ApiService
    callers: Callers
    environment: Environment

    def page(
        self,
        request: Request,
        template: str,
        *,
        title: str,
        current: str = "",
        fragment: str | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """One page.

        Args:
            request: that it answers.
            template: its name.
            title: of the page.
            current: the address in the navigation that it belongs to.
            fragment: the template of the part that htmx asks for at the same address, if it does.
            status: of the answer.
            headers: more of them.
            values: what the template shows.
        """
        partial = fragment is not None and request.headers.get("hx-request") == "true"
        frame = Frame(
            title=title,
            current=current,
            address=own_address(address_of(request)),
            caller=request.scope.get("caller"),
            session=request.scope.get("session"),
            takes_orders=self.service.orders is not None,
            now=datetime.now(UTC),
        )
        chosen = self.environment.get_template(fragment if partial and fragment else template)
        return HTMLResponse(
            # Somebody pasted a token into a filter or a form: the page would show it to who looks over their shoulder.
            without_tokens(chosen.render(frame=frame, partial=partial, **values)),
            status_code=status,
            headers={"Vary": "HX-Request", **(headers or {})},
        )


def may_read_the_record(request: Request) -> bool:
    """Whether who asks may read events, and with them the messages of a destination."""
    caller: Caller | None = request.scope.get("caller")
    return caller is not None and caller.role in SEES_THE_RECORD


def _maker(request: Request) -> PageMaker:
    maker: PageMaker = request.app.state.maker
    return maker


def _own_form(request: Request, form_key: Annotated[str, Form(max_length=200)] = "") -> None:
    """Refuse a form of another page; the gate has looked at Origin and Sec-Fetch-Site already.

    Raises:
        ForeignFormError: it brings no key, or another session's.
    """
    session: Session | None = request.scope.get("session")
    if session is None or not session.has_key(form_key):
        raise ForeignFormError(
            checked="the key of this form",
            expected="the one of the session that sends it",
            found="another one" if form_key else "none",
            next_action="load the page again and send its form; a session ends with this server's process",
        )


Maker = Annotated[PageMaker, Depends(_maker)]
OwnForm = Depends(_own_form)


def address_in_table(request: Request) -> Address:
    """The address of a request as the table of rights has it."""
    return (request.method, getattr(request.scope.get("route"), "path", ""))
