"""Lists of runs, one run, its operations, and one of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

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
    is_ordered,
    pace_of,
    parts,
    refusal_of,
    waits_for_a_writer,
    without_advice,
    writers_of,
)
from ledger.events import StoredEvent
from ledger.plan.asserted import asserted_fields
from ledger.plan.canonical import object_key
from ledger.store.records import BindingRow

router = APIRouter()

RUNS_PER_PAGE = 50
OPERATIONS_PER_PAGE = 100
MOST_ORDERS = 20
MOST_STEPS = 20

RUN_STATES: tuple[RunStateName, ...] = ("open", "applied", "stopped", "failed", "interrupted", "refused")
RESUMABLE = frozenset({"stopped", "failed", "interrupted", "refused"})
"""A refused run too: when what its refusal names is fixed, a resumption checks the same plan again."""
OutcomeFilter = OutcomeName | Literal["but_skipped", "had_failed", "had_unknown"]
OUTCOME_FILTERS: tuple[OutcomeFilter, ...] = (
    *("applied", "skipped", "failed", "unknown", "not_attempted"),
    *("but_skipped", "had_failed", "had_unknown"),
)
"""What is true of an operation now; the last two are of any of its attempts, also of one that was applied later."""

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
    text: Annotated[str | None, Field(max_length=200, pattern=r"^[^\x00]*$")] = None
    cursor: Cursor = None
    ordered: Annotated[str | None, Field(max_length=20)] = None


class RunQuery(Query):
    """What was just ordered, so that the page can say so."""

    ordered: Annotated[str | None, Field(max_length=20)] = None


class OperationsQuery(Query):
    """Filters of the operations of a run."""

    outcome: OutcomeFilter | None = None
    kind: KindName | None = None
    cursor: Cursor = None


@router.get("/runs")
async def runs(request: Request, maker: Maker, query: Annotated[RunsQuery, Parameters()]) -> Response:
    """Runs of all destinations or of one, newest first."""
    reader = maker.service.reader
    wanted = RunFilter(query.binding, query.source, query.state, query.since, query.until, query.text)
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
        leases={row.id for row in bindings if row.has_live_lease},
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
    partial = request.headers.get("hx-request") == "true"
    return maker.page(
        request,
        "run.html",
        fragment="_run_progress.html",
        title=f"Run {run_id}",
        current="/runs",
        run=found,
        place=place,
        failure=await _failure(maker, request, found),
        operations=None if partial else await _operations(maker, found, OperationsQuery()),
        query=OperationsQuery(),
        outcomes=OUTCOME_FILTERS,
        **await _told(maker, found, place, query.ordered),
    )


async def _told(maker: PageMaker, run: RunDetail, place: BindingRow, ordered: str | None) -> dict[str, Any]:
    """What a page tells of a run besides its operations."""
    reader = maker.service.reader
    marks = await reader.ledger.run_marks(run.binding_id, run.run_id, limit=MOST_STEPS)
    epochs = sorted({(run.binding_id, mark.writer_epoch) for mark in marks if mark.writer_epoch is not None})
    orders = await reader.orders_of_run(run.binding_id, run.run_id, limit=MOST_ORDERS)
    return {
        "leases": {place.id} if place.has_live_lease else set(),
        "in_flight": place.in_flight if place.in_flight and place.in_flight.run_id == run.run_id else None,
        "newest": await _newest_at(maker, place) if run.running else None,
        # An order to go on with a run that has ended: until a writer takes it up, nothing of the run itself says so.
        "open": is_open(run) or (run.state in RESUMABLE and is_ordered(orders)),
        "resumable": run.state in RESUMABLE,
        "parts": parts(run),
        "refusal": refusal_of(run),
        "steps": steps(marks),
        "most_steps": MOST_STEPS,
        "pace": pace_of(run, marks, datetime.now(UTC)) if place.has_live_lease else None,
        "writers": writers_of(await reader.ledger.writer_openings(epochs)),
        "orders": orders,
        "most_orders": MOST_ORDERS,
        "policy": policy_words(run.commit.policy.model_dump()),
        "most_findings": MOST_FINDINGS,
        # A link may say anything at any time: it is told as long as it is so.
        "ordered": ordered if ordered and waits_for_a_writer(run, orders, ordered) else None,
    }


async def _newest_at(maker: PageMaker, place: BindingRow) -> datetime | None:
    """When the destination's newest event was recorded: while a run is carried out, that is one of it."""
    found = await maker.service.reader.ledger.events_page(place.id, after=place.head_position - 1, until=None, limit=1)
    return found[0].recorded_at if found else None


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
        outcomes=OUTCOME_FILTERS,
    )


async def _operations(maker: PageMaker, run: RunDetail, query: OperationsQuery) -> Page[OperationView]:
    return await maker.service.reader.operations(
        run.binding_id,
        run.run_id,
        _filter(query),
        cursor=query.cursor,
        limit=OPERATIONS_PER_PAGE,
    )


def _filter(query: OperationsQuery) -> OperationFilter:
    match query.outcome:
        case "had_failed":
            return OperationFilter(kind=query.kind, had="failed")
        case "had_unknown":
            return OperationFilter(kind=query.kind, had="unknown")
        case "but_skipped":
            return OperationFilter(kind=query.kind, but="skipped")
        case outcome:
            return OperationFilter(outcome, query.kind)


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
        messages = {event.position: _said(event) for event in events}
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


def _said(event: StoredEvent) -> dict[str, Any]:
    """What the event of an attempt says for people, and when it was recorded."""
    body = parsed_object(event.body) or {}
    message, advice = (
        given if isinstance(given, str) else None for given in (body.get("message"), body.get("next_action"))
    )
    return {"message": without_advice(message, advice), "next_action": advice, "at": event.recorded_at}
