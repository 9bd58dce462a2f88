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


@dataclass(frozen=True, slots=True)
class ApiService:
    """One API over one ledger. ``orders`` None: it only reads."""

    reader: LedgerReader
    follower: ProjectionFollower
    watch: HeadWatch
    orders: Orders | None
    limits: ApiLimits
    slots: StreamSlots
    metrics: ApiMetrics

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


def answer_bytes(request: Request, data: bytes, *, media_type: str = "application/json") -> Response:
    """The same for bytes that are JSON already."""
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = {part.strip().removeprefix("W/") for part in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=media_type, headers=headers)
