"""Single objects: found by kind and identity, who is behind each of their values, and all that was ever asserted."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import BeforeValidator, Field
from starlette.responses import Response

from ledger.api.object_models import ObjectView
from ledger.api.object_routes import MAX_IDENTITY, ObjectKey
from ledger.api.problems import problem_of
from ledger.api.service import BindingId
from ledger.audit.identities import identities_of
from ledger.dashboard.commands import object_command
from ledger.dashboard.pages import Maker, PageMaker, Query
from ledger.errors import ApplyLedgerError, UsageError
from ledger.plan.canonical import object_key
from ledger.plan.errors import UnserializablePayloadValueError

router = APIRouter()

RECENT = 20
PER_PAGE = 20
MAX_CURSOR = 1024

Stripped = BeforeValidator(lambda value: value.strip() if isinstance(value, str) else value)


class ObjectsQuery(Query):
    """Which object is looked for; nothing shows those that were written last."""

    kind: Annotated[str | None, Stripped, Field(max_length=128)] = None
    identity: Annotated[str | None, Field(max_length=MAX_IDENTITY)] = None
    binding: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None


class ObjectQuery(Query):
    """The cursor of an object's history."""

    cursor: Annotated[str | None, Field(max_length=MAX_CURSOR)] = None


@router.get("/objects")
async def objects(request: Request, maker: Maker, query: Annotated[ObjectsQuery, Parameters()]) -> Response:
    """A search by kind and identity, and the objects that were written last."""
    bindings = await maker.service.reader.ledger.bindings()
    found: list[ObjectView] | None = None
    refused: ApplyLedgerError | None = None
    if query.kind and query.identity:
        try:
            identities = identities_of(_fields(query.identity))
            found = await maker.service.objects.find(query.kind, identities, query.binding)
        except (UsageError, UnserializablePayloadValueError) as exc:
            refused = exc
    chosen = [row for row in bindings if query.binding in (None, row.id)]
    recent = [] if found else await _recent(maker, [row.id for row in chosen])
    return maker.page(
        request,
        "objects.html",
        title="Objects",
        current="/objects",
        status=200 if refused is None else 422,
        query=query,
        bindings=bindings,
        places={row.id: row for row in bindings},
        found=found,
        problem=refused and problem_of(refused, request.url.path),
        recent=recent,
        kinds=sorted({item.kind for item in recent}),
    )


@router.get("/bindings/{binding_id}/objects/{object_key}")
async def one_object(
    request: Request,
    maker: Maker,
    binding_id: BindingId,
    object_key: ObjectKey,
    query: Annotated[ObjectQuery, Parameters()],
) -> Response:
    """Who is behind each value of an object, and its history, newest first; further on in it, the history alone."""
    reader, deep = maker.service.objects, query.cursor is not None
    # A blame reads the whole history: paging through it with one on each page would read that once a page.
    blame = None if deep else await reader.blame(binding_id, object_key)
    history = await reader.history(binding_id, object_key, cursor=query.cursor, limit=PER_PAGE)
    named = f"{history.kind} {_short(history.identity)}" if history.kind else f"Object {object_key[:12]}…"
    return maker.page(
        request,
        "object.html",
        title=named,
        current="/objects",
        blame=blame,
        history=history,
        deep=deep,
        peer=peer_of,
        command=blame and object_command("blame", blame.kind, blame.identity, blame.url, blame.branch),
    )


def _fields(text: str) -> list[str]:
    """A JSON object as it is; else one field a line."""
    text = text.strip()
    return [text] if text.startswith("{") else [line.strip() for line in text.splitlines() if line.strip()]


async def _recent(maker: PageMaker, bindings: list[int]) -> list[ObjectView]:
    found = [await maker.service.objects.recent(binding_id, limit=RECENT) for binding_id in bindings[:RECENT]]
    newest = sorted((item for items in found for item in items), key=lambda item: item.recorded_at, reverse=True)
    return newest[:RECENT]


def _short(identity: dict[str, Any]) -> str:
    return ", ".join(str(value) for value in identity.values())[:80]


class Peer(NamedTuple):
    """What a reference points to; ``key`` names its page."""

    kind: str
    identity: dict[str, Any]
    key: str


def peer_of(value: Any) -> Peer | None:
    """What a value points to, where it is a reference as plans have it."""
    if not isinstance(value, dict) or value.keys() != {"identity", "peer_kind"}:
        return None
    kind, identity = value["peer_kind"], value["identity"]
    if not isinstance(kind, str) or not isinstance(identity, dict):
        return None
    try:
        return Peer(kind=kind, identity=identity, key=object_key(kind, identity).hex())
    except UnserializablePayloadValueError:
        return None
