"""How far a ledger can be proven, and how: heads, the last signed ones, and the exact commands."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import BaseModel, Field
from starlette.responses import Response

from ledger.audit.bodies import parsed_object
from ledger.audit.heads import trusted_checkpoint
from ledger.audit.uncovered import events_behind
from ledger.dashboard.commands import command
from ledger.dashboard.pages import Maker, PageMaker, Query
from ledger.errors import ApplyLedgerError
from ledger.events import CheckpointPublished
from ledger.store.records import BindingRow

router = APIRouter()

MOST_BINDINGS = 20


class VerificationQuery(Query):
    """Which destination; none shows the first ones."""

    binding: Annotated[int | None, Field(ge=1, le=2**63 - 1)] = None


class SignedHead(BaseModel):
    """The last checkpoint of a binding as its event says it.

    ``signers`` are the public keys of this installation that signed its note, where the note is of this binding and
    position and the log has its hash there; empty where that was not shown.
    """

    event_position: int
    recorded_at: datetime
    position: int
    head_hash: str
    keys: list[str]
    note: str
    signers: tuple[str, ...]


class Standing(BaseModel):
    """What is known of one binding's log."""

    binding_id: int
    url: str
    branch: str
    head_position: int
    head_hash: str
    signed: SignedHead | None
    readable: bool
    """Whether its last checkpoint, if it has one, is one of ours."""
    verify: str
    publish: str

    @property
    def behind(self) -> int:
        """How many events the last checkpoint does not cover."""
        if self.signed is None:
            return self.head_position
        return events_behind(self.head_position, self.signed.position, self.signed.event_position)


@router.get("/verification")
async def verification(request: Request, maker: Maker, query: Annotated[VerificationQuery, Parameters()]) -> Response:
    """Head and last checkpoint of each binding, and how to prove that nothing was touched."""
    reader = maker.service.reader
    bindings = await reader.ledger.bindings()
    chosen = bindings[:MOST_BINDINGS] if query.binding is None else [await reader.binding_row(query.binding)]
    return maker.page(
        request,
        "verification.html",
        title="Verification",
        current="/verification",
        bindings=bindings,
        chosen=query.binding,
        standings=[await _standing(maker, row) for row in chosen],
    )


async def _standing(maker: PageMaker, row: BindingRow) -> Standing:
    mark = await maker.service.reader.ledger.last_checkpoint(row.id)
    signed = None
    if mark is not None:
        try:
            body = CheckpointPublished.model_validate(parsed_object(mark.body))
        except ValueError:
            pass  # the page says so, and a verification says what is wrong with it
        else:
            signed = SignedHead(
                event_position=mark.position,
                recorded_at=mark.recorded_at,
                position=body.position,
                head_hash=body.head_hash,
                keys=body.keys,
                note=body.note,
                signers=await _signers(maker, row, body),
            )
    of_this = ("--url", row.url, "--branch", row.branch)
    return Standing(
        binding_id=row.id,
        url=row.url,
        branch=row.branch,
        head_position=row.head_position,
        head_hash=row.head_hash.hex(),
        signed=signed,
        readable=mark is None or signed is not None,
        verify=command("verify", *of_this),
        publish=command("checkpoint", "publish", *of_this),
    )


async def _signers(maker: PageMaker, row: BindingRow, body: CheckpointPublished) -> tuple[str, ...]:
    """Who signed the last checkpoint, as far as this server can tell: by its own keys and the log as it stands."""
    service = maker.service
    try:
        trusted = trusted_checkpoint(body.note.encode(), "the last checkpoint", service.keys.public_keys())
    except ApplyLedgerError:  # no key, or a note that is none: nothing is shown, and `verify` says what is wrong
        return ()
    if not trusted.is_of(row.url, row.branch) or trusted.position != body.position:
        return ()
    ledger = service.reader.ledger
    there = await ledger.events_page(row.id, after=trusted.position - 1, until=trusted.position, limit=1)
    return trusted.signers if [event.hash for event in there] == [trusted.head_hash] else ()
