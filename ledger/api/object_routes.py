"""Routes for single objects: which are known, what was ever asserted of one, and who is behind its values."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from ledger.api import object_models as models
from ledger.api.errors import InvalidIdentityError
from ledger.api.reading_routes import KindName
from ledger.api.rights import BASE
from ledger.api.service import BindingId, Page, Service, answer, answer_bytes

router = APIRouter(prefix=BASE, tags=["objects"])

MAX_IDENTITY = 16_384
"""Characters of an identity in an address; an object whose identity is longer is found by its key."""

ObjectKey = Annotated[
    str,
    Path(
        pattern=r"^[0-9a-f]{64}$",
        description="`object_key` of the object: sha256 of the canonical JSON of [kind, identity].",
        examples=["c0ffee" * 10 + "c0ff"],
    ),
]


class ObjectQuery(BaseModel):
    """Which object."""

    model_config = ConfigDict(extra="forbid")

    kind: KindName
    identity: str = Field(
        max_length=MAX_IDENTITY,
        description='Its identity as plans have it, in JSON; a reference in it is {"identity": …, "peer_kind": …}.',
        examples=['{"name":"red"}'],
    )
    binding: int | None = Field(default=None, ge=1, le=2**63 - 1, description="On this destination alone.")


@router.get("/objects", response_model=list[models.ObjectView], summary="An object, wherever it is known")
async def objects(request: Request, service: Service, query: Annotated[ObjectQuery, Query()]) -> Response:
    """The object of this kind and identity on each destination on which anything was attempted on it; often one."""
    return answer(request, await service.objects.find(query.kind, [_identity(query.identity)], query.binding))


@router.get(
    "/bindings/{binding_id}/objects/{object_key}/history",
    response_model=models.ObjectHistoryView,
    summary="Everything that was ever asserted of an object, newest first",
)
async def history(
    request: Request, service: Service, binding_id: BindingId, object_key: ObjectKey, query: Page
) -> Response:
    """Applied, skipped, failed and unknown alike, with what the plans had seen before. The destination is not read."""
    found = await service.objects.history(binding_id, object_key, cursor=query.cursor, limit=query.limit)
    return _told(request, found)


@router.get(
    "/bindings/{binding_id}/objects/{object_key}/blame",
    response_model=models.BlameView,
    summary="Who is behind each value of an object",
)
async def blame(request: Request, service: Service, binding_id: BindingId, object_key: ObjectKey) -> Response:
    """Each attribute with the event, run, plan, source, actor and reason that its value is from, the earlier ones, and
    attempts since then that may have written another one."""
    return _told(request, await service.objects.blame(binding_id, object_key))


def _told(request: Request, document: BaseModel) -> Response:
    """What nothing is known of is left out: null is a value that an attribute can have."""
    return answer_bytes(request, document.model_dump_json(exclude_unset=True).encode())


def _identity(text: str) -> dict[str, Any]:
    try:
        identity = json.loads(text)
    except (ValueError, RecursionError):
        identity = None
    if not isinstance(identity, dict) or not identity:
        raise InvalidIdentityError(
            checked="the parameter identity",
            expected="a JSON object with at least one field",
            found="something else",
            next_action='for example {"name":"red"}; the operations of a run show how plans spell it',
        )
    return identity
