"""Processes that serve destinations, and who holds the lease of each."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from starlette.responses import Response

from ledger.dashboard.overview_pages import DESTINATIONS_PER_PAGE, DestinationsQuery, following
from ledger.dashboard.pages import Maker
from ledger.dashboard.run_story import writers_of

router = APIRouter()


@router.get("/workers")
async def workers(request: Request, maker: Maker, query: Annotated[DestinationsQuery, Parameters()]) -> Response:
    """Workers as they said last, and the writer of each destination."""
    reader = maker.service.reader
    rows = await reader.ledger.bindings()
    bindings = await reader.bindings(after=query.after, limit=DESTINATIONS_PER_PAGE)
    found = await reader.workers()
    openings = await reader.ledger.writer_openings([(binding.id, binding.writer.epoch) for binding in bindings])
    return maker.page(
        request,
        "workers.html",
        title="Workers",
        current="/workers",
        workers=found,
        opened={writer.binding_id: writer for writer in writers_of(openings)},
        bindings=bindings,
        unserved=sum(1 for row in rows if not row.has_live_lease),
        following=following(rows, bindings),
        deep=query.after > 0,
    )
