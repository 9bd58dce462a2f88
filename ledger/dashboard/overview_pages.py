"""The overview of all destinations, and the page of one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from ledger.api.filters import RunFilter
from ledger.api.service import BindingId
from ledger.dashboard.pages import Maker, PageMaker
from ledger.dashboard.verdicts import activity, newest, verdict

router = APIRouter()

CHARTED = 300
"""The newest runs that a chart tells of."""

RECENT = 10
"""Of them, those that are listed."""


@router.get("/")
async def overview(request: Request, maker: Maker) -> Response:
    """Every destination: is it in line, who writes to it, what waits."""
    bindings = await maker.service.reader.bindings()
    return maker.page(
        request,
        "overview.html",
        title="Overview",
        current="/",
        bindings=[(binding, verdict(binding), newest(binding)) for binding in bindings],
        places={binding.id: (binding.url, binding.branch) for binding in bindings},
        **await _runs(maker, None),
    )


@router.get("/bindings/{binding_id}")
async def binding(request: Request, maker: Maker, binding_id: BindingId) -> Response:
    """One destination: the same and more, with its own runs."""
    found = await maker.service.reader.binding(binding_id)
    return maker.page(
        request,
        "binding.html",
        title=f"{found.branch} at {found.url}",
        current="/",
        binding=found,
        verdict=verdict(found),
        places={found.id: (found.url, found.branch)},
        **await _runs(maker, binding_id),
    )


async def _runs(maker: PageMaker, binding_id: int | None) -> dict[str, Any]:
    page = await maker.service.reader.runs(RunFilter(binding_id), cursor=None, limit=CHARTED)
    return {"activity": activity(page.items), "recent": page.items[:RECENT], "all_charted": page.next is None}
