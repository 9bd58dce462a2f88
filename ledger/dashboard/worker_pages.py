"""Processes that serve destinations, and who holds the lease of each."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ledger.dashboard.pages import Maker

router = APIRouter()


@router.get("/workers")
async def workers(request: Request, maker: Maker) -> Response:
    """Workers as they said last, and the writer of each destination."""
    reader = maker.service.reader
    bindings = await reader.bindings()
    found = await reader.workers()
    return maker.page(
        request,
        "workers.html",
        title="Workers",
        current="/workers",
        workers=found,
        bindings=bindings,
        unserved=sum(1 for item in bindings if not item.writer.live),
    )
