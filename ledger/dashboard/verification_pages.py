"""How far a ledger can be proven, and how: heads, the last signed ones, and the exact commands."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Request
from fastapi import Query as Parameters
from pydantic import BaseModel, Field
from starlette.responses import Response

from ledger.audit.bodies import parsed_object
from ledger.audit.checkpoint import read_checkpoint
from ledger.audit.errors import NoteUnreadableError
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


Confirmation = Literal["confirmed", "no_key", "other_key", "unreadable", "differs"]
"""What this server finds of the last checkpoint.

    confirmed   the log has the signed hash at that position, and a key of this server signed it
    no_key      the log has that hash, and there is no key here to check the signature with
    other_key   the log has that hash, and no key of this server signed it
    unreadable  its note is none
    differs     the log, or what it says of the checkpoint, is not what the note says: one of them was changed
"""


class SignedHead(BaseModel):
    """The last checkpoint of a binding as its event says it.

    ``signers`` are the public keys of this installation that signed its note; they are told where it is confirmed.
    """

    event_position: int
    recorded_at: datetime
    position: int
    head_hash: str
    keys: list[str]
    note: str
    confirmation: Confirmation
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
            confirmation, signers = await _confirmation(maker, row, body)
            signed = SignedHead(
                event_position=mark.position,
                recorded_at=mark.recorded_at,
                position=body.position,
                head_hash=body.head_hash,
                keys=body.keys,
                note=body.note,
                confirmation=confirmation,
                signers=signers,
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


async def _confirmation(
    maker: PageMaker, row: BindingRow, body: CheckpointPublished
) -> tuple[Confirmation, tuple[str, ...]]:
    """How the last checkpoint stands to the log, and who signed it as far as this server can tell.

    The log is compared first: where it is not what was signed, it does not matter by whom.
    """
    try:
        read = read_checkpoint(body.note.encode())
    except NoteUnreadableError:
        return "unreadable", ()
    said = read.checkpoint
    there = await maker.service.reader.ledger.events_page(row.id, after=said.position - 1, until=said.position, limit=1)
    recorded = (row.url, row.branch, body.position, body.head_hash, [event.hash for event in there])
    if recorded != (said.url, said.branch, said.position, said.head_hash.hex(), [said.head_hash]):
        return "differs", ()
    try:
        keys = maker.service.keys.public_keys()
    except ApplyLedgerError:  # a folder of keys that cannot be read has none to check with; `keys list` says why
        keys = []
    if not keys:
        return "no_key", ()
    signers = tuple(read.signers(keys))
    return ("confirmed" if signers else "other_key"), signers
