"""Routes for what is known: bindings, runs, operations, orders, workers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field
from starlette.responses import Response

from ledger.api import models
from ledger.api.filters import OperationFilter, RunFilter
from ledger.api.moments import UtcMoment
from ledger.api.rights import BASE
from ledger.api.service import BindingId, Ordinal, Page, Paging, RunIdPath, Service, answer

router = APIRouter(prefix=BASE, tags=["reading"])

SourceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", examples=["netbox"])]
KindName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,128}$", examples=["DcimDevice"])]


class BindingRunsQuery(Paging):
    """Filters of the runs of one binding."""

    source: SourceName | None = None
    state: models.RunStateName | None = None
    since: UtcMoment | None = Field(default=None, description="Committed then or later, by the ledger's clock.")
    until: UtcMoment | None = Field(default=None, description="Committed before then.")


class RunsQuery(BindingRunsQuery):
    """Filters of the list of all runs."""

    binding: Annotated[int, Field(ge=1, le=2**63 - 1)] | None = None


class OperationsQuery(Paging):
    """Filters of the operations of a run."""

    outcome: models.OutcomeName | None = None
    kind: KindName | None = None


@router.get("/bindings", response_model=list[models.BindingView], summary="All destinations")
async def bindings(request: Request, service: Service) -> Response:
    """Every destination that anything was ever committed to, oldest first."""
    return answer(request, await service.reader.bindings())


@router.get("/bindings/{binding_id}", response_model=models.BindingView, summary="One destination")
async def binding(request: Request, service: Service, binding_id: BindingId) -> Response:
    """Who writes to it, how far its log is, and what was last committed, started, ended and applied."""
    return answer(request, await service.reader.binding(binding_id))


@router.get("/runs", response_model=models.Page[models.RunView], summary="Runs of all destinations, newest first")
async def runs(request: Request, service: Service, query: Annotated[RunsQuery, Query()]) -> Response:
    """Sorted by when their commits came, for display: there is no order between the logs of two destinations."""
    wanted = RunFilter(query.binding, query.source, query.state, query.since, query.until)
    return answer(request, await service.reader.runs(wanted, cursor=query.cursor, limit=query.limit))


@router.get(
    "/bindings/{binding_id}/runs",
    response_model=models.Page[models.RunView],
    summary="Runs of one destination, newest first",
)
async def runs_of_binding(
    request: Request, service: Service, binding_id: BindingId, query: Annotated[BindingRunsQuery, Query()]
) -> Response:
    """In the reverse order of their commits, which is the order in which they are carried out."""
    wanted = RunFilter(binding_id, query.source, query.state, query.since, query.until)
    return answer(request, await service.reader.runs(wanted, cursor=query.cursor, limit=query.limit))


@router.get("/bindings/{binding_id}/runs/{run_id}", response_model=models.RunDetail, summary="One run")
async def run(request: Request, service: Service, binding_id: BindingId, run_id: RunIdPath) -> Response:
    """Counts that add up to its plan, what was ordered, overlaps, how it ended, and what did not succeed."""
    return answer(request, await service.reader.run(binding_id, run_id))


@router.get(
    "/bindings/{binding_id}/runs/{run_id}/summary", response_model=models.SummaryView, summary="The six keys of a run"
)
async def summary(request: Request, service: Service, binding_id: BindingId, run_id: RunIdPath) -> Response:
    """All six keys with their lists whole, however long they are."""
    return answer(request, await service.reader.summary(binding_id, run_id))


@router.get(
    "/bindings/{binding_id}/runs/{run_id}/operations",
    response_model=models.Page[models.OperationView],
    summary="Operations of a run, in stored order",
)
async def operations(
    request: Request,
    service: Service,
    binding_id: BindingId,
    run_id: RunIdPath,
    query: Annotated[OperationsQuery, Query()],
) -> Response:
    """Each with its one outcome over all attempts. There are none before a writer has verified the plan."""
    wanted = OperationFilter(query.outcome, query.kind)
    return answer(
        request,
        await service.reader.operations(binding_id, run_id, wanted, cursor=query.cursor, limit=query.limit),
    )


@router.get(
    "/bindings/{binding_id}/runs/{run_id}/operations/{ordinal}",
    response_model=models.OperationDetail,
    summary="One operation",
)
async def operation(
    request: Request, service: Service, binding_id: BindingId, run_id: RunIdPath, ordinal: Ordinal
) -> Response:
    """What it sends, what stood there before, and every attempt."""
    return answer(request, await service.reader.operation(binding_id, run_id, ordinal))


@router.get(
    "/bindings/{binding_id}/inbox", response_model=models.Page[models.OrderView], summary="Orders, newest first"
)
async def inbox(request: Request, service: Service, binding_id: BindingId, query: Page) -> Response:
    """Commits, resumptions and stops for the writer of a destination, open and closed."""
    return answer(request, await service.reader.orders(binding_id, cursor=query.cursor, limit=query.limit))


@router.get("/workers", response_model=list[models.WorkerView], summary="Processes that serve destinations")
async def workers(request: Request, service: Service) -> Response:
    """As they said last; one that does not say it again is forgotten."""
    return answer(request, await service.reader.workers())
