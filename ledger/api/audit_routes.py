"""Routes for audits: the record as of a place, whether it is whole, and the evidence that can be taken elsewhere."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from ledger.api import audit_models as models
from ledger.api import audit_work
from ledger.api.audit_reading import AuditReader
from ledger.api.audit_responses import ARCHIVE, LINES, Asker
from ledger.api.models import Page as PageOf
from ledger.api.reading_routes import KindName
from ledger.api.rights import BASE
from ledger.api.service import (
    Asking,
    BindingId,
    Page,
    RunIdPath,
    Service,
    StillAsking,
    Tagged,
    answer,
    answer_bytes,
    as_file,
)
from ledger.audit.export.archive import archive_name
from ledger.audit.export.layout import EVENTS_IN_A_GROUP

router = APIRouter(prefix=BASE, tags=["audit"])

Place = Annotated[
    str,
    Field(
        max_length=64,
        description="A position, or a date or time in ISO 8601 (in UTC where it names no zone).",
        examples=["42", "2026-11-29T18:05:00+01:00"],
    ),
]
CheckpointPath = Annotated[int, Path(ge=1, le=2**63 - 2, description="`event` of the checkpoint.", examples=[7])]
OperationPath = Annotated[str, Path(pattern=r"^op_[0-9a-f]{16}$", examples=["op_0123456789abcdef"])]


def _asker(request: Request, service: Service, caller: Asking, still_works: StillAsking) -> Asker:
    return Asker(request, service, caller, still_works)


def _reader(service: Service) -> AuditReader:
    return AuditReader(service.reader, service.keys)


_NOTHING_KEPT = models.VerifyOrder()
Auditing = Annotated[Asker, Depends(_asker)]
Reader = Annotated[AuditReader, Depends(_reader)]


def _lines(stream: str, record: str) -> dict[int | str, dict[str, Any]]:
    example = f'{{"stream":"{stream}","version":1}}\n{record}\n{{"stream":"{stream}","complete":true,"records":1}}\n'
    return {
        200: {
            "description": f"Lines of JSON: the head of the stream `{stream}`, a record each, and a last one with "
            '`"complete":true`. Without that line they are not all; `"complete":false` brings the problem.',
            "content": {LINES: {"schema": {"type": "string"}, "example": example}},
        }
    }


class StateQuery(BaseModel):
    """As of which place, and of which objects."""

    model_config = ConfigDict(extra="forbid")

    at: Place | None = Field(default=None, description="As of this position or time; the head where it is left out.")
    kind: KindName | None = Field(default=None, description="Only objects of this kind.")


class DiffQuery(BaseModel):
    """Between which places, and of which objects."""

    model_config = ConfigDict(extra="forbid")

    first: Place = Field(alias="from")
    second: Place = Field(alias="to")
    kind: KindName | None = Field(default=None, description="Only objects of this kind.")


class ExportQuery(BaseModel):
    """How an export is made."""

    model_config = ConfigDict(extra="forbid")

    row_group: int = Field(
        default=EVENTS_IN_A_GROUP, ge=1, le=100_000, description="Events in a row group of the Parquet file."
    )
    ndjson: bool = Field(default=True, description="Write the events as lines of JSON as well.")


@router.get(
    "/bindings/{binding_id}/state",
    response_class=Response,
    responses=_lines(
        audit_work.STATE,
        '{"url":"http://infrahub.example","branch":"main","as_of":42,"object_key":"…","kind":"BuiltinTag",'
        '"identity":{"name":"red"},"fields":{"name":"red"},"position":41,"recorded_at":"…","run_id":"…",'
        '"node_id":"…","in_doubt":[],"delete_recorded":null}',
    ),
    summary="What is asserted of each object, as of a place",
)
async def state(
    asker: Auditing, reader: Reader, binding_id: BindingId, query: Annotated[StateQuery, Query()]
) -> Response:
    """The lines of `replay --state --at PLACE`: what was written through this ledger, object by object."""
    row = await reader.binding_row(binding_id)
    until = await reader.last_position(row, query.at, "at")
    tagged = Tagged.of(*await reader.decided_by(row, audit_work.STATE, until), repr(query.kind).encode())
    if (unchanged := tagged.unchanged(asker.request)) is not None:
        return unchanged
    work = audit_work.states(row, until, query.kind)
    return await asker.stream(work, media_type=LINES, headers=tagged.headers, stream=audit_work.STATE)


@router.get(
    "/bindings/{binding_id}/state/diff",
    response_class=Response,
    responses=_lines(
        audit_work.DIFF,
        '{"url":"http://infrahub.example","branch":"main","from":20,"to":42,"object_key":"…","kind":"BuiltinTag",'
        '"identity":{"name":"red"},"change":"changed","fields":{"description":{"before":"a","after":"b"}},'
        '"position":41,"recorded_at":"…","run_id":"…","in_doubt":[],"delete_recorded":null}',
    ),
    summary="What is asserted differently at two places",
)
async def diff(
    asker: Auditing, reader: Reader, binding_id: BindingId, query: Annotated[DiffQuery, Query()]
) -> Response:
    """The lines of `replay --diff FROM TO`. Where `to` is the earlier place, the changes are those that lead back."""
    row = await reader.binding_row(binding_id)
    first = await reader.last_position(row, query.first, "from")
    second = await reader.last_position(row, query.second, "to")
    parts = [*await reader.decided_by(row, audit_work.DIFF, first), *await reader.decided_by(row, "", second)]
    tagged = Tagged.of(*parts, repr(query.kind).encode())
    if (unchanged := tagged.unchanged(asker.request)) is not None:
        return unchanged
    work = audit_work.changes(row, first, second, query.kind)
    return await asker.stream(work, media_type=LINES, headers=tagged.headers, stream=audit_work.DIFF)


@router.post(
    "/bindings/{binding_id}/verify", response_model=models.VerifyView, summary="Is the record what was appended"
)
async def verify(
    asker: Auditing, reader: Reader, binding_id: BindingId, order: models.VerifyOrder = _NOTHING_KEPT
) -> Response:
    """The report of `verify`: chain, plans, outcomes, projections, and every checkpoint. Read it where you trust the
    server; else verify an export, or with the command, against a checkpoint that was kept elsewhere."""
    row = await reader.binding_row(binding_id)
    report = await asker.result(audit_work.verification(row, reader.evidence(row, order)))
    return Response(json.dumps(report.document(), ensure_ascii=False), media_type="application/json")


@router.get(
    "/bindings/{binding_id}/checkpoints",
    response_model=PageOf[models.CheckpointView],
    summary="Signed heads, newest first",
)
async def checkpoints(request: Request, reader: Reader, binding_id: BindingId, query: Page) -> Response:
    """The checkpoints that the ledger knows of; `verify` says whether it still agrees with them."""
    return answer(request, await reader.checkpoints(binding_id, cursor=query.cursor, limit=query.limit))


@router.get(
    "/bindings/{binding_id}/checkpoints/{checkpoint}",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    summary="One signed head as a note, to be kept elsewhere",
)
async def checkpoint(request: Request, reader: Reader, binding_id: BindingId, checkpoint: CheckpointPath) -> Response:
    """The bytes of the file that `checkpoint publish` writes (C2SP signed note). Only where whoever owns the database
    cannot rewrite it does it prove anything."""
    position, note = await reader.note(binding_id, checkpoint)
    return answer_bytes(request, note, media_type="text/plain; charset=utf-8", name=f"{position:012}.note")


@router.get("/checkpoint-keys", response_model=list[models.KeyView], summary="Public keys of checkpoints")
async def keys(request: Request, reader: Reader) -> Response:
    """Those that this installation knows. Compare them with what its owner gave you on another way."""
    return answer(request, reader.keys())


@router.get(
    "/bindings/{binding_id}/export",
    response_class=Response,
    responses={
        200: {
            "description": "An archive (tar) of one folder, which `verify --export` proves. `manifest.json` is its "
            "last file: one without it was cut off.",
            "content": {ARCHIVE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    summary="The whole record of a destination as files",
)
async def export(
    asker: Auditing, reader: Reader, binding_id: BindingId, query: Annotated[ExportQuery, Query()]
) -> Response:
    """The files of `export`: events in Parquet and as lines, runs, operations, plans with their accounts, and the last
    checkpoint. They are made first, in a folder for temporary files, and sent then."""
    row = await reader.binding_row(binding_id)
    most = asker.service.limits.max_export_bytes
    work = audit_work.export(row, group=query.row_group, lines=query.ndjson, most_bytes=most)
    headers = {"Cache-Control": "no-store", **as_file(f"{archive_name(row)}.tar")}
    return await asker.stream(work, media_type=ARCHIVE, headers=headers)


@router.get(
    "/bindings/{binding_id}/runs/{run_id}/proofs/{operation_id}",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {"type": "object"}}}}},
    summary="Everything that shows one operation's outcome",
)
async def proof(
    asker: Auditing, reader: Reader, binding_id: BindingId, run_id: RunIdPath, operation_id: OperationPath
) -> Response:
    """The file of `prove`: the operation's line, its outcomes, and the paths to a signed head, without the rest of its
    plan. `verify --proof` checks it anywhere."""
    row = await reader.binding_row(binding_id)
    data = await asker.result(audit_work.proof(row, run_id, operation_id))
    return answer_bytes(asker.request, data, name=f"{run_id}-{operation_id}.json")
