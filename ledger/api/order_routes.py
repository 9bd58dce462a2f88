"""Routes that give orders. Each is safe to send again: an order that came before is answered, not given twice."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Header
from starlette.responses import Response

from ledger.api.models import Receipt
from ledger.api.orders import CommitOrder, ResumeOrder, RunName, StopOrder, order_id_of
from ledger.api.rights import BASE
from ledger.api.service import Asking, BindingId, RunIdPath, Service

router = APIRouter(prefix=BASE, tags=["orders"])

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="The same key with the same request is one order; with another request it is refused (409).",
    ),
]
Traceparent = Annotated[str | None, Header(description="W3C trace context, kept with the run where it is one.")]
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
"""A trace context is a help to others: a bad one is passed over, as W3C has it, and no order fails for it."""


@router.post("/commits", status_code=202, response_model=Receipt, summary="Order a reviewed plan to be applied")
async def commit(service: Service, caller: Asking, order: CommitOrder, traceparent: Traceparent = None) -> Response:
    """The same as `apply-ledger commit`. A run is committed once, so the run itself is the key of a repeat."""
    known = traceparent if traceparent and _TRACEPARENT.fullmatch(traceparent) else None
    return _taken(await service.require_orders().commit(order, actor=caller.actor, traceparent=known))


@router.post(
    "/bindings/{binding_id}/runs/{run_id}/resume", status_code=202, response_model=Receipt, summary="Go on with a run"
)
async def resume(
    service: Service,
    caller: Asking,
    binding_id: BindingId,
    run_id: RunIdPath,
    order: ResumeOrder,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The same as `apply-ledger resume --no-wait`: from the first operation without a success."""
    run, order_id = RunName(binding_id=binding_id, run_id=run_id), order_id_of(caller.token_id, idempotency_key)
    return _taken(await service.require_orders().resume(run, order, actor=caller.actor, order_id=order_id))


@router.post("/bindings/{binding_id}/runs/{run_id}/stop", status_code=202, response_model=Receipt, summary="Stop a run")
async def stop(
    service: Service,
    caller: Asking,
    binding_id: BindingId,
    run_id: RunIdPath,
    order: StopOrder,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """The same as `apply-ledger stop`: after the operation in flight. What was written stays."""
    run, order_id = RunName(binding_id=binding_id, run_id=run_id), order_id_of(caller.token_id, idempotency_key)
    return _taken(await service.require_orders().stop(run, order, actor=caller.actor, order_id=order_id))


def _taken(receipt: Receipt) -> Response:
    where = f"/api/v1/bindings/{receipt.binding_id}/runs/{receipt.run_id}" if receipt.binding_id else "/api/v1/runs"
    return Response(
        receipt.model_dump_json(), status_code=202, media_type="application/json", headers={"Location": where}
    )
