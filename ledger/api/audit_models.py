"""What the API answers about evidence. Times are UTC by the database's clock, positions count from 1."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from ledger.api.models import Position, Sha256, View
from ledger.audit.signed_note import MAX_NOTE_BYTES
from ledger.errors import Finding

Note = Annotated[str, Field(max_length=MAX_NOTE_BYTES, description="A signed note, whole: the text of its file.")]
Key = Annotated[
    str,
    Field(
        max_length=200,
        description="A public key as `apply-ledger checkpoint key public` prints it.",
        examples=["ours+5b1c2f4e+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"],
    ),
]


class VerifyOrder(BaseModel):
    """What a verification is to compare with. Without anything it looks at all that the ledger itself can tell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    checkpoints: list[Note] = Field(
        default_factory=list,
        max_length=7,
        description="Signed heads that were kept elsewhere; the ledger must extend each.",
    )
    resume_from: Note | None = Field(default=None, description="One that is trusted: what it covers is not read again.")
    keys: list[Key] = Field(
        default_factory=list,
        max_length=100,
        description="What the notes are checked with; those of this server where none is named.",
    )


class LevelView(View):
    """One thing that was looked at."""

    level: str = Field(examples=["chain"])
    says: str = Field(description="What is true where it held.")
    status: Literal["held", "failed", "not checked", "nothing there"]
    checked: int = Field(description="How many things were looked at.")
    findings: list[Finding] = Field(description="What is wrong, the first 200 in full.")
    findings_total: int
    unchecked: list[str] = Field(description="What was not looked at, and why.")
    notes: list[str] = Field(description="What was found out besides: how far a signed head reaches, whose it is.")


class BreakView(View):
    """Where something does not hold."""

    position: int = Field(description="Of the event at which it shows.")
    kind: str = Field(description="The name of the finding.", examples=["ChainHash"])
    level: str = Field(examples=["chain"])
    after: int | None = Field(
        description="Null: at that event itself. Else somewhere behind this position, up to which a signed head agrees"
        " (0: none does), and at or before `position`."
    )


class VerifyView(View):
    """The report of `verify`. An answer of 200 says that it was done; ``holds`` says what came of it."""

    url: str
    branch: str
    holds: bool = Field(description="Whether nothing that could be checked is wrong.")
    head_position: Position
    head_hash: Sha256
    events: int = Field(description="How many events were read.")
    covered_to: int | None = Field(
        description="The last event that a given signed head covers with which the log agrees; null without one."
    )
    first_break: BreakView | None = Field(description="The first event at which something is wrong.")
    levels: list[LevelView]


class CheckpointView(View):
    """A checkpoint as its event says it; nothing of it is proven by that."""

    event: Position = Field(description="Of its event; names it in addresses.")
    recorded_at: datetime
    readable: bool = Field(description="Whether its event is one of this program's; else the rest is null.")
    position: Position | None = Field(description="Up to which it covers the log.")
    head_hash: str | None = Field(description="Of the event there.")
    tree_root: str | None = Field(description="Of the tree over the hashes of all events up to there (RFC 6962).")
    signed_at: str | None = Field(description="By the signer's clock.")
    keys: list[str] | None = Field(description="Names of the keys that signed it.")


class KeyView(View):
    """A public key. One that comes from the server that is to be checked proves nothing about that server."""

    name: str
    signs: bool = Field(description="Whether it signs checkpoints here; false for one that was retired.")
    key: str = Field(examples=["ours+5b1c2f4e+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4"])
