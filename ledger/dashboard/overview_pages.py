"""The overview of all destinations, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import Field
from starlette.responses import Response

from ledger.api.filters import RunFilter
from ledger.api.models import BindingView
from ledger.api.service import BindingId
from ledger.audit.published import known_checkpoint
from ledger.audit.uncovered import events_uncovered
from ledger.dashboard.pages import Maker, PageMaker, Query
from ledger.dashboard.verdicts import activity, newest, verdict
from ledger.store.records import BindingRow

router = APIRouter()

CHARTED = 300
"""The newest runs that a chart tells of."""

RECENT = 10
"""Of them, those that are listed."""

DESTINATIONS_PER_PAGE = 100


class DestinationsQuery(Query):
    """The destination after which a list continues."""

    after: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0


def following(rows: Sequence[BindingRow], shown: Sequence[BindingView]) -> int | None:
    """What the next page of a list of destinations goes on behind; None where these are the last ones."""
    return shown[-1].id if shown and shown[-1].id < rows[-1].id else None


@router.get("/")
async def overview(request: Request, maker: Maker, query: Annotated[DestinationsQuery, Parameters()]) -> Response:
    """Every destination: how its last run ended, who writes to it, what waits."""
    reader = maker.service.reader
    rows = await reader.ledger.bindings()
    bindings = await reader.bindings(after=query.after, limit=DESTINATIONS_PER_PAGE)
    signed = await reader.ledger.last_checkpoints([binding.id for binding in bindings])
    bodies = {id_: known_checkpoint(mark).body for id_, mark in signed.items()}
    return maker.page(
        request,
        "overview.html",
        title="Overview",
        current="/",
        bindings=[(binding, verdict(binding), newest(binding)) for binding in bindings],
        unsigned={found.id: events_uncovered(found.head_position, signed.get(found.id)) for found in bindings},
        signed=signed,
        covered={id_: body and body.position for id_, body in bodies.items()},
        places={row.id: (row.url, row.branch) for row in rows},
        leases={row.id for row in rows if row.has_live_lease},
        total=len(rows),
        following=following(rows, bindings),
        deep=query.after > 0,
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
        leases={found.id} if found.writer.live else set(),
        **await _runs(maker, binding_id),
    )


async def _runs(maker: PageMaker, binding_id: int | None) -> dict[str, Any]:
    page = await maker.service.reader.runs(RunFilter(binding_id), cursor=None, limit=CHARTED)
    return {"activity": activity(page.items), "recent": page.items[:RECENT], "all_charted": page.next is None}
