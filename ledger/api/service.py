"""What the routes work with: one set for each application."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from ledger.api.audits import Audits
from ledger.api.cursors import MAX_LENGTH
from ledger.api.errors import OrdersNotTakenError
from ledger.api.following import ProjectionFollower
from ledger.api.limits import MAX_PAGE, ApiLimits, StreamSlots
from ledger.api.metrics import ApiMetrics
from ledger.api.object_reading import ObjectReader
from ledger.api.orders import Orders
from ledger.api.reading import LedgerReader
from ledger.api.rights import NOBODY_ASKED, require_right
from ledger.api.streaming import HeadWatch, StillWorks
from ledger.api.tokens import Caller
from ledger.audit.keys import KeyFolder


@dataclass(frozen=True, slots=True)
class ApiService:
    """One API over one ledger. ``orders`` None: it only reads. ``keys``: what checkpoints are checked with."""

    reader: LedgerReader
    follower: ProjectionFollower
    watch: HeadWatch
    orders: Orders | None
    limits: ApiLimits
    slots: StreamSlots
    metrics: ApiMetrics
    audits: Audits
    keys: KeyFolder

    @property
    def objects(self) -> ObjectReader:
        """What reads single objects."""
        return ObjectReader(self.reader)

    def require_orders(self) -> Orders:
        """What takes orders.

        Raises:
            OrdersNotTakenError: nothing does.
        """
        if self.orders is None:
            raise OrdersNotTakenError(
                checked="whether this server takes orders",
                expected="one that does",
                found="one that was started to read only",
                next_action="use the command line, or a server that was started without --read-only",
            )
        return self.orders


def _service(request: Request) -> ApiService:
    service: ApiService = request.app.state.service
    return service


def _caller(request: Request) -> Caller:
    caller: Caller = request.scope["caller"]
    return caller


def _still_works(request: Request) -> StillWorks:
    asked: StillWorks = request.scope["still_works"]
    return asked


def authorise(request: Request) -> None:
    """Refuse what the caller's role may not ask for; stands in front of every route.

    Raises:
        ForbiddenError: it may not.
    """
    route = request.scope.get("route")
    path = route.path if isinstance(route, APIRoute) else ""
    if path not in NOBODY_ASKED:
        require_right(_caller(request), (request.method, path))


Service = Annotated[ApiService, Depends(_service)]
Asking = Annotated[Caller, Depends(_caller)]
StillAsking = Annotated[StillWorks, Depends(_still_works)]
BindingId = Annotated[int, Path(ge=1, le=2**63 - 1, description="As GET /api/v1/bindings lists it.", examples=[1])]
RunIdPath = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", examples=["20261129T1900-0a1b2c3d"])]
Ordinal = Annotated[int, Path(ge=0, le=2**63 - 1, description="Place in the plan, from 0.", examples=[0])]
PositionPath = Annotated[int, Path(ge=1, le=2**63 - 1, examples=[1])]


class Paging(BaseModel):
    """What every list takes. A parameter that a list does not know is refused: it must not look like a filter."""

    model_config = ConfigDict(extra="forbid")

    cursor: str | None = Field(default=None, max_length=MAX_LENGTH, description="`next` of the page before.")
    limit: int = Field(default=50, ge=1, le=MAX_PAGE, description="How many at most.")


Page = Annotated[Paging, Query()]


def answer(request: Request, document: BaseModel | Sequence[BaseModel]) -> Response:
    """A document, or 304 where the sender has it already."""
    if isinstance(document, BaseModel):
        return answer_bytes(request, document.model_dump_json().encode())
    return answer_bytes(request, b"[" + b",".join(item.model_dump_json().encode() for item in document) + b"]")


def answer_bytes(
    request: Request, data: bytes, *, media_type: str = "application/json", name: str | None = None
) -> Response:
    """The same for bytes that are JSON already; ``name``: of the file that a browser keeps them in."""
    tagged = Tagged.of(data)
    headers = tagged.headers | ({} if name is None else as_file(name))
    return tagged.unchanged(request) or Response(data, media_type=media_type, headers=headers)


@dataclass(frozen=True, slots=True)
class Tagged:
    """What an answer is told apart by, so that one that its sender has already is not sent again."""

    tag: str

    @classmethod
    def of(cls, *parts: bytes) -> Tagged:
        """By the bytes of the answer, or by everything that decides them."""
        digest = hashlib.sha256(parts[0] if len(parts) == 1 else repr(parts).encode()).hexdigest()
        return cls(f'"{digest[:32]}"')

    @property
    def headers(self) -> dict[str, str]:
        """Headers of the answer."""
        return {"ETag": self.tag, "Cache-Control": "private, no-cache"}

    def unchanged(self, request: Request) -> Response | None:
        """304 where the sender has it already."""
        known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
        return Response(status_code=304, headers=self.headers) if self.tag in known or "*" in known else None


def as_file(name: str) -> dict[str, str]:
    """Lets a browser keep an answer as a file; ``name``: of letters, digits, dots and dashes."""
    return {"Content-Disposition": f'attachment; filename="{name}"'}
