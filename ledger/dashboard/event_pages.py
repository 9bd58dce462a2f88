"""The record itself: the events of a binding, and one of them with its bytes and its hash."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import AfterValidator, Field
from starlette.responses import Response

from ledger.api.errors import NotThereError
from ledger.api.reading import LedgerReader
from ledger.api.service import BindingId, PositionPath
from ledger.audit.bodies import is_canonical, parsed
from ledger.chain import event_hash
from ledger.dashboard.pages import Maker, Query
from ledger.events import BODIES, StoredEvent
from ledger.printable import visible_json
from ledger.store.story_pages import UNINDEXED_KINDS

router = APIRouter()

PER_PAGE = 50
PRETTY = 20_000
"""Bytes of a body that is also shown with one value a line."""


FINDABLE = tuple(kind for kind in BODIES if kind not in UNINDEXED_KINDS)
"""Kinds that can be looked for. The others fill a log; the page of a run lists its operations by outcome."""


def _findable(kind: str) -> str:
    if kind not in FINDABLE:
        raise ValueError(f"one of {', '.join(FINDABLE)}; applied and skipped operations are listed by their run")
    return kind


class EventsQuery(Query):
    """Which events: those up to a position, the newest first; nothing begins at the head. All kinds, or one."""

    until: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None
    kind: Annotated[str, AfterValidator(_findable)] | None = None


@router.get("/bindings/{binding_id}/events")
async def events(
    request: Request, maker: Maker, binding_id: BindingId, query: Annotated[EventsQuery, Parameters()]
) -> Response:
    """The log of a binding, newest first."""
    row = await maker.service.reader.binding_row(binding_id)
    until = min(query.until or row.head_position, row.head_position)
    found, older = await _up_to(maker.service.reader, binding_id, until, query.kind)
    return maker.page(
        request,
        "events.html",
        title="Events",
        current="/",
        row=row,
        events=found,
        until=until,
        kind=query.kind,
        kinds=FINDABLE,
        older=older,
        newer=min(until + PER_PAGE, row.head_position) if until < row.head_position and query.kind is None else None,
        deep=until < row.head_position,
    )


async def _up_to(
    reader: LedgerReader, binding_id: int, until: int, kind: str | None
) -> tuple[list[StoredEvent], int | None]:
    """A page of events, newest first, and the position that the next one goes up to."""
    if kind is not None:
        found = await reader.ledger.events_of_kind(binding_id, kind, before=until + 1, limit=PER_PAGE + 1)
        return found[:PER_PAGE], found[PER_PAGE].position if len(found) > PER_PAGE else None
    after = max(0, until - PER_PAGE)
    page, _ = await reader.events(binding_id, cursor=None, after=after, limit=PER_PAGE)
    return [event for event in reversed(page) if event.position <= until], after or None


@router.get("/bindings/{binding_id}/events/{position}")
async def one_event(request: Request, maker: Maker, binding_id: BindingId, position: PositionPath) -> Response:
    """One event as it is stored, and whether its hash is that of what is shown."""
    reader = maker.service.reader
    row = await reader.binding_row(binding_id)
    event = await reader.event(binding_id, position)
    before = await _event_before(reader, binding_id, position)
    return maker.page(
        request,
        "event.html",
        title=f"Event {position:,}",
        current="/",
        row=row,
        event=event,
        text=event.body.decode(),
        digest=hashlib.sha256(event.body).hexdigest(),
        canonical=is_canonical(event.body),
        pretty=_pretty(event),
        own_hash_holds=_own_hash_holds(event),
        link_holds=before is not None and event.prev_hash == before,
    )


async def _event_before(reader: LedgerReader, binding_id: int, position: int) -> bytes | None:
    """The hash of the event before one; None where that event was taken out, which this page must live to tell (G8)."""
    if position == 1:
        return bytes(32)
    try:
        return (await reader.event(binding_id, position - 1)).hash
    except NotThereError:
        return None


def _own_hash_holds(event: StoredEvent) -> bool:
    try:
        return event_hash(event) == event.hash
    except ValueError:
        return False  # a number that this program cannot have stored


def _pretty(event: StoredEvent) -> list[str] | None:
    """The body with one value a line, where that is shorter than endless and the body is JSON at all.

    No character of a value ends a line: only those line feeds do that stand between values.
    """
    if len(event.body) > PRETTY:
        return None
    document = parsed(event.body)
    if document is None:
        return None
    try:
        pretty = json.dumps(document, indent=2, ensure_ascii=False)
    except RecursionError:  # it takes more depth to write one than to read it
        return None
    return visible_json(pretty).split("\n")
