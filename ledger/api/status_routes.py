"""Whether the process lives, whether it can answer, and what it counts."""

from __future__ import annotations

import time

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import Response

from ledger.api.service import ApiService, Service
from ledger.errors import ApplyLedgerError

router = APIRouter(tags=["status"])

STUCK_AFTER = 60.0
"""Seconds without a successful look at the log after which the projections count as stuck."""


class Health(BaseModel):
    """That the process answers."""

    ok: bool


class Readiness(BaseModel):
    """Whether it can answer what it is asked."""

    ok: bool
    checks: dict[str, str] = Field(examples=[{"database": "ok", "projections": "ok", "migrations": "ok"}])


@router.get("/healthz", response_model=Health, summary="Is the process alive")
async def healthz() -> Health:
    """Answers without a look at anything else."""
    return Health(ok=True)


@router.get(
    "/readyz", response_model=Readiness, responses={503: {"model": Readiness}}, summary="Can the process answer"
)
async def readyz(service: Service) -> Response:
    """The database can be read, and the projections move. Names of checks only: nobody was asked who wants to know."""
    checks = {"database": await _database(service), "projections": _projections(service)}
    ready = Readiness(ok=set(checks.values()) == {"ok"}, checks=checks)
    return Response(ready.model_dump_json(), status_code=200 if ready.ok else 503, media_type="application/json")


async def _database(service: ApiService) -> str:
    try:
        await service.reader.ledger.projections_are_behind()
    except ApplyLedgerError as exc:
        return type(exc).__name__
    return "ok"


def _projections(service: ApiService) -> str:
    if service.follower.trouble is not None:
        return service.follower.trouble
    return "ok" if time.monotonic() - service.follower.last_success < STUCK_AFTER else "stuck"


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    summary="What the process counts",
)
async def metrics(service: Service) -> Response:
    """For Prometheus, which can send a token."""
    await service.metrics.ledger_state.refresh(service.reader.ledger)
    return Response(generate_latest(service.metrics.registry), media_type=CONTENT_TYPE_LATEST)
