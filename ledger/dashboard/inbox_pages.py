"""Orders for the writers, and everything that was refused before a write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import Field
from starlette.responses import Response

from ledger.api.models import Page as ListPage
from ledger.api.models import PlanRefusalView, RefusedMessageView
from ledger.api.tokens import Caller
from ledger.dashboard.pages import Maker, Query
from ledger.dashboard.rights import SEES_THE_RECORD
from ledger.dashboard.run_story import Refusal, refusal_in

router = APIRouter()

PER_PAGE = 50
REFUSED_PER_PAGE = 20
MOST_BINDINGS = 20
FEW = 10
MAX_CURSOR = 1024


class InboxQuery(Query):
    """Whose orders; none shows the newest of each destination."""

    binding: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None
    cursor: Annotated[str | None, Field(max_length=MAX_CURSOR)] = None


class RefusedQuery(Query):
    """Cursors of the two lists of refusals."""

    plans: Annotated[str | None, Field(max_length=MAX_CURSOR)] = None
    messages: Annotated[str | None, Field(max_length=MAX_CURSOR)] = None


@dataclass(frozen=True, slots=True)
class RefusedPlan:
    """One refusal of a plan, with every reason, who ordered what was refused, and its run as it is now.

    ``resumed_by`` and ``resumed_why`` are of the order to resume that was refused; empty where the commit itself was.
    """

    mark: PlanRefusalView
    refusal: Refusal
    resumed_by: str
    resumed_why: str

    @property
    def is_last(self) -> bool:
        """Whether nothing happened to the run since."""
        run = self.mark.run
        return run is not None and run.ended_position == self.mark.position and not run.running


@router.get("/inbox")
async def inbox(request: Request, maker: Maker, query: Annotated[InboxQuery, Parameters()]) -> Response:
    """Commits, resumptions and stops for the writers: of one destination page by page, or the newest of each."""
    reader = maker.service.reader
    bindings = await reader.ledger.bindings()
    if query.binding is None and len(bindings) != 1:
        chosen = bindings[:MOST_BINDINGS]
        limit = FEW
    else:
        chosen = [await reader.binding_row(query.binding or bindings[0].id)]
        limit = PER_PAGE
    cursor = query.cursor if len(chosen) == 1 else None
    lists = [(row, await reader.orders(row.id, cursor=cursor, limit=limit)) for row in chosen]
    return maker.page(
        request,
        "inbox.html",
        title="Inbox",
        current="/inbox",
        bindings=bindings,
        chosen=query.binding,
        lists=lists,
        lines=await reader.run_lines({(row.id, order.run_id) for row, page in lists for order in page.items}),
        alone=len(chosen) == 1,
        deep=cursor is not None,
    )


@router.get("/refused")
async def refused(request: Request, maker: Maker, query: Annotated[RefusedQuery, Parameters()]) -> Response:
    """Every refusal of a plan that was ever recorded, reasons first; and messages that could not become an order."""
    reader = maker.service.reader
    refusals = await reader.plan_refusals(cursor=query.plans, limit=REFUSED_PER_PAGE)
    caller: Caller = request.scope["caller"]
    messages: ListPage[RefusedMessageView] | None = None
    if caller.role in SEES_THE_RECORD:
        messages = await reader.refused_messages(cursor=query.messages, limit=REFUSED_PER_PAGE)
    return maker.page(
        request,
        "refused.html",
        title="Refused",
        current="/refused",
        plans=[_refused_plan(mark) for mark in refusals.items],
        plans_next=refusals.next,
        messages=messages,
        query=query,
        places={row.id: row for row in await reader.ledger.bindings()},
    )


def _refused_plan(mark: PlanRefusalView) -> RefusedPlan:
    by, why = mark.body.get("by"), mark.body.get("reason")
    return RefusedPlan(
        mark, refusal_in(mark.body), by if isinstance(by, str) else "", why if isinstance(why, str) else ""
    )
