"""Lists of runs, one run, its operations, and one of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import AfterValidator, Field
from starlette.responses import Response

from ledger.api.cursors import MAX_LENGTH
from ledger.api.filters import OperationFilter, RunFilter
from ledger.api.models import OperationView, OutcomeName, Page, RunDetail, RunStateName
from ledger.api.moments import in_utc
from ledger.api.reading_routes import KindName, SourceName
from ledger.api.service import BindingId, Ordinal, RunIdPath
from ledger.audit.bodies import parsed_object
from ledger.audit.run_story import policy_words, steps
from ledger.dashboard.pages import Maker, PageMaker, Query, may_read_the_record
from ledger.dashboard.run_story import (
    MOST_FINDINGS,
    Failure,
    changes,
    failure_of,
    is_open,
    parts,
    refusal_of,
)
from ledger.plan.asserted import asserted_fields
from ledger.plan.canonical import object_key

router = APIRouter()

RUNS_PER_PAGE = 50
OPERATIONS_PER_PAGE = 100
NEWEST_ORDERS = 50
MOST_STEPS = 20

RUN_STATES: tuple[RunStateName, ...] = ("open", "applied", "stopped", "failed", "interrupted", "refused")
RESUMABLE = frozenset({"stopped", "failed", "interrupted", "refused"})
"""A refused run too: when what its refusal names is fixed, a resumption checks the same plan again."""
OUTCOMES: tuple[OutcomeName, ...] = ("applied", "skipped", "failed", "unknown", "not_attempted")

Cursor = Annotated[str | None, Field(max_length=MAX_LENGTH)]


def _with_zone(when: datetime) -> datetime:
    """A time without a zone is UTC, as the page says beside its field."""
    return in_utc(when if when.tzinfo is not None else when.replace(tzinfo=UTC))


Moment = Annotated[datetime, AfterValidator(_with_zone)] | None


class RunsQuery(Query):
    """Filters of the list of runs."""

    binding: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None
    state: RunStateName | None = None
    source: SourceName | None = None
    since: Moment = None
    until: Moment = None
    cursor: Cursor = None
    ordered: Annotated[str | None, Field(max_length=20)] = None


class RunQuery(Query):
    """What was just ordered, so that the page can say so."""

    ordered: Annotated[str | None, Field(max_length=20)] = None


class OperationsQuery(Query):
    """Filters of the operations of a run."""

    outcome: OutcomeName | None = None
    kind: KindName | None = None
    cursor: Cursor = None


@router.get("/runs")
async def runs(request: Request, maker: Maker, query: Annotated[RunsQuery, Parameters()]) -> Response:
    """Runs of all destinations or of one, newest first."""
    reader = maker.service.reader
    wanted = RunFilter(query.binding, query.source, query.state, query.since, query.until)
    page = await reader.runs(wanted, cursor=query.cursor, limit=RUNS_PER_PAGE)
    bindings = await reader.ledger.bindings()
    filters = query.model_dump(exclude={"cursor", "ordered"})
    return maker.page(
        request,
        "runs.html",
        title="Runs",
        current="/runs",
        page=page,
        query=query,
        filters=filters,
        filtered=any(value is not None for value in filters.values()),
        places={row.id: (row.url, row.branch) for row in bindings},
        states=RUN_STATES,
    )


@router.get("/bindings/{binding_id}/runs/{run_id}")
async def run(
    request: Request,
    maker: Maker,
    binding_id: BindingId,
    run_id: RunIdPath,
    query: Annotated[RunQuery, Parameters()],
) -> Response:
    """One run: what is wrong first, then how far it is, what was ordered, and its operations."""
    reader = maker.service.reader
    place = await reader.binding_row(binding_id)
    found = await reader.run(binding_id, run_id)
    # An order to go on with a run that has ended: until a writer takes it up, nothing of the run itself says so.
    waits = await reader.ledger.run_is_ordered(binding_id, run_id)
    partial = request.headers.get("hx-request") == "true"
    operations = None if partial else await _operations(maker, found, OperationsQuery())
    return maker.page(
        request,
        "run.html",
        fragment="_run_progress.html",
        title=f"Run {run_id}",
        current="/runs",
        run=found,
        place=place,
        open=is_open(found) or (waits and found.state in RESUMABLE),
        resumable=found.state in RESUMABLE,
        parts=parts(found),
        failure=await _failure(maker, request, found),
        refusal=refusal_of(found),
        steps=steps(await reader.ledger.run_marks(binding_id, run_id, limit=MOST_STEPS)),
        most_steps=MOST_STEPS,
        policy=policy_words(found.commit.policy.model_dump()),
        most_findings=MOST_FINDINGS,
        operations=operations,
        query=OperationsQuery(),
        ordered=query.ordered if query.ordered and await _stands(maker, found, query.ordered) else None,
        outcomes=OUTCOMES,
    )


async def _stands(maker: PageMaker, run: RunDetail, ordered: str) -> bool:
    """Whether an order of this kind waits among the newest: a link may say anything at any time."""
    newest = await maker.service.reader.orders(run.binding_id, cursor=None, limit=NEWEST_ORDERS)
    return any((order.run_id, order.kind, order.state) == (run.run_id, ordered, "open") for order in newest.items)


async def _failure(maker: PageMaker, request: Request, run: RunDetail) -> Failure | None:
    """The operation that stopped a run, with what the destination said where that may be read."""
    if not run.unsettled:
        return None
    reader, last = maker.service.reader, run.unsettled[-1]
    operation = await reader.operation(run.binding_id, run.run_id, last.ordinal) if run.plan_stored else None
    event = await reader.event(run.binding_id, last.position) if may_read_the_record(request) else None
    return failure_of(last, operation, event)


@router.get("/bindings/{binding_id}/runs/{run_id}/operations")
async def operations(
    request: Request,
    maker: Maker,
    binding_id: BindingId,
    run_id: RunIdPath,
    query: Annotated[OperationsQuery, Parameters()],
) -> Response:
    """The operations of a run, in the order of its plan."""
    found = await maker.service.reader.run(binding_id, run_id)
    return maker.page(
        request,
        "operations.html",
        fragment="_operations.html",
        title=f"Operations of {run_id}",
        current="/runs",
        run=found,
        place=await maker.service.reader.binding_row(binding_id),
        operations=await _operations(maker, found, query),
        open=is_open(found),
        query=query,
        outcomes=OUTCOMES,
    )


async def _operations(maker: PageMaker, run: RunDetail, query: OperationsQuery) -> Page[OperationView]:
    return await maker.service.reader.operations(
        run.binding_id,
        run.run_id,
        OperationFilter(query.outcome, query.kind),
        cursor=query.cursor,
        limit=OPERATIONS_PER_PAGE,
    )


@router.get("/bindings/{binding_id}/runs/{run_id}/operations/{ordinal}")
async def operation(
    request: Request, maker: Maker, binding_id: BindingId, run_id: RunIdPath, ordinal: Ordinal
) -> Response:
    """One operation: old and new values, and every attempt with what was said of it."""
    reader = maker.service.reader
    found = await reader.operation(binding_id, run_id, ordinal)
    messages = {}
    if may_read_the_record(request):
        events, _ = await reader.events(
            binding_id, cursor=None, after=0, limit=OPERATIONS_PER_PAGE, of=[run_id, found.operation_id]
        )
        messages = {event.position: parsed_object(event.body) or {} for event in events}
    return maker.page(
        request,
        "operation.html",
        fragment="_operation_values.html",
        title=f"Operation {ordinal:,} of {run_id}",
        current="/runs",
        operation=found,
        run_id=run_id,
        place=await reader.binding_row(binding_id),
        changes=changes(asserted_fields(parsed_object(found.line.encode()) or {}), found.observed),
        key=object_key(found.kind, found.identity).hex() if found.kind and found.identity else None,
        messages=messages,
    )
