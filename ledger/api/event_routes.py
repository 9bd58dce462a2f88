"""Routes for the record itself: events as stored, as they come, and messages that were refused."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from ledger.api import models, views
from ledger.api.errors import PositionAheadError
from ledger.api.rights import BASE
from ledger.api.service import (
    ApiService,
    Asking,
    BindingId,
    Page,
    Paging,
    PositionPath,
    RunIdPath,
    Service,
    StillAsking,
    answer,
    answer_bytes,
)
from ledger.api.streaming import EventStream, StillWorks, StreamResponse
from ledger.api.tokens import Caller

router = APIRouter(prefix=BASE, tags=["record"])

After = Annotated[int, Field(ge=0, le=2**63 - 1, description="Begin behind this position.")]
_STREAM_DOCS = {
    200: {
        "description": "Server-sent events: `id` the position, `event` the kind, `data` the event as EventView has it.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
_LAST_ID = "The last `id` that was seen; the stream goes on behind it."


class EventsQuery(Paging):
    """Filters of the events of a binding."""

    after: After = 0


class RunEventsQuery(EventsQuery):
    """Filters of the events of a run."""

    operation: Annotated[str, Field(pattern=r"^op_[0-9a-f]{16}$")] | None = Field(
        default=None, description="Of this operation alone: its outcomes."
    )


class StreamQuery(BaseModel):
    """Where a stream begins."""

    model_config = ConfigDict(extra="forbid")

    after: After = 0


LastEventId = Annotated[str | None, Header(alias="Last-Event-ID", pattern=r"^[0-9]{1,19}$", description=_LAST_ID)]


@router.get(
    "/bindings/{binding_id}/events", response_model=models.Page[models.EventView], summary="Events, by position"
)
async def events(
    request: Request, service: Service, binding_id: BindingId, query: Annotated[EventsQuery, Query()]
) -> Response:
    """Events as they are stored; each body is the recorded text itself."""
    return await _page(request, service, binding_id, query)


@router.get(
    "/bindings/{binding_id}/runs/{run_id}/events",
    response_model=models.Page[models.EventView],
    summary="Events of a run, or of one operation of it",
)
async def events_of_run(
    request: Request,
    service: Service,
    binding_id: BindingId,
    run_id: RunIdPath,
    query: Annotated[RunEventsQuery, Query()],
) -> Response:
    """In stored order."""
    return await _page(request, service, binding_id, query, run_id, *([query.operation] if query.operation else []))


async def _page(request: Request, service: ApiService, binding_id: int, query: EventsQuery, *of: str) -> Response:
    found, cursor = await service.reader.events(
        binding_id, cursor=query.cursor, after=query.after, limit=query.limit, of=of
    )
    items = ",".join(map(views.event_json, found))
    return answer_bytes(request, f'{{"items":[{items}],"next":{_quoted(cursor)}}}'.encode())


def _quoted(cursor: str | None) -> str:
    return "null" if cursor is None else f'"{cursor}"'


@router.get(
    "/bindings/{binding_id}/events/stream",
    response_class=Response,
    responses=_STREAM_DOCS,  # type: ignore[arg-type] # FastAPI wants a dict of unions, which is invariant
    summary="Events as they come",
)
async def stream(
    service: Service,
    caller: Asking,
    still_works: StillAsking,
    binding_id: BindingId,
    query: Annotated[StreamQuery, Query()],
    last_event_id: LastEventId = None,
) -> Response:
    """Every event of a log once and in order, from a position on, also over reconnects and restarts of this server."""
    return await _stream(service, caller, still_works, binding_id, _start(query.after, last_event_id), None)


@router.get(
    "/bindings/{binding_id}/runs/{run_id}/events/stream",
    response_class=Response,
    responses=_STREAM_DOCS,  # type: ignore[arg-type] # as above
    summary="Events of a run as they come",
)
async def stream_of_run(
    service: Service,
    caller: Asking,
    still_works: StillAsking,
    binding_id: BindingId,
    run_id: RunIdPath,
    query: Annotated[StreamQuery, Query()],
    last_event_id: LastEventId = None,
) -> Response:
    """The same for the events of one run; it stays open behind the run's end, because a run may be resumed."""
    return await _stream(service, caller, still_works, binding_id, _start(query.after, last_event_id), run_id)


def _start(after: int, last_event_id: str | None) -> int:
    return after if last_event_id is None else int(last_event_id)


async def _stream(
    service: ApiService, caller: Caller, still_works: StillWorks, binding_id: int, after: int, run: str | None
) -> Response:
    row = await service.reader.binding_row(binding_id)
    if after > row.head_position:
        raise PositionAheadError(
            checked=f"the position {after} of binding {binding_id}",
            expected=f"at most {row.head_position}, the head of its log",
            found="a greater one",
            next_action="find out which log it was of, or whether a backup was restored; then begin again at 0",
        )
    name = caller.token_id or "local"
    service.slots.require_free(name)
    events_to_come = EventStream(
        service.reader.ledger,
        service.watch,
        service.metrics,
        binding_id=binding_id,
        after=after,
        run=run,
        still_works=still_works,
    )
    return StreamResponse(
        events_to_come.chunks(),
        slots=service.slots,
        caller=name,
        metrics=service.metrics,
        send_seconds=service.limits.stream_send_seconds,
    )


@router.get("/bindings/{binding_id}/events/{position}", response_model=models.EventView, summary="One event")
async def event(request: Request, service: Service, binding_id: BindingId, position: PositionPath) -> Response:
    """One event as it is stored."""
    found = await service.reader.event(binding_id, position)
    return answer_bytes(request, views.event_json(found).encode())


@router.get(
    "/bindings/{binding_id}/events/{position}/body",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
    summary="The recorded bytes of one event's body",
)
async def event_body(request: Request, service: Service, binding_id: BindingId, position: PositionPath) -> Response:
    """Exactly the bytes that the event's hash covers."""
    return answer_bytes(request, (await service.reader.event(binding_id, position)).body)


@router.get(
    "/refused-messages",
    response_model=models.Page[models.RefusedMessageView],
    summary="Messages that could not become an order, newest first",
)
async def refused_messages(request: Request, service: Service, query: Page) -> Response:
    """Where each came from, a digest of its bytes, and why."""
    return answer(request, await service.reader.refused_messages(cursor=query.cursor, limit=query.limit))
