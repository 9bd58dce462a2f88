"""What the API answers about single objects. Times are UTC by the database's clock, positions count from 1."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ledger.api.models import Position, Sha256, View
from ledger.audit.history import Result


class ObjectView(View):
    """An object that the ledger knows, and what was last attempted on it."""

    binding_id: int
    object_key: Sha256 = Field(description="Names kind and identity in addresses.")
    kind: str
    identity: dict[str, Any]
    outcome: Result
    run_id: str
    position: Position
    recorded_at: str


class ResumptionView(View):
    """On whose word a run went on."""

    position: Position
    by: str | None
    reason: str | None


class AssertedView(View):
    """Which event it is, and on whose word it was sent."""

    position: Position
    recorded_at: str
    event_id: str
    outcome: Result
    action: str
    run_id: str
    plan_checksum: Sha256
    operation_id: str
    ordinal: int
    attempt: int
    writer_epoch: int | None
    source: str | None
    actor: str | None
    reason: str | None
    committed_at: str | None = Field(description="By the committer's clock.")
    node_id: str | None = Field(description="The object's id at the destination, as it answered.")
    error: str | None
    message: str | None


class AssertionView(AssertedView):
    """One outcome of one operation on an object, with all it asserted."""

    resumed: ResumptionView | None = Field(description="The order after which this attempt ran.")
    fields: dict[str, dict[str, Any]] = Field(
        description="Each field with `value`, and with `before` where the plan says what stood there."
    )


class ObjectHistoryView(View):
    """Some of the assertions of one object, newest first."""

    binding_id: int
    url: str
    branch: str
    object_key: Sha256
    kind: str
    identity: dict[str, Any]
    items: list[AssertionView]
    next: str | None = Field(description="Pass it as `cursor`; null at the end.")


class EarlierView(AssertedView):
    """A value that an attribute was given, and by what."""

    value: Any


class DoubtView(EarlierView):
    """A value that may have been written: the answer was lost."""

    before: Any = Field(default=None, description="What the plan had seen there; left out where it says nothing.")
    resumed: ResumptionView | None


class AttributeView(View):
    """One attribute: the last value that was certainly written and what it is from, and what is in doubt since.

    Where nothing was certainly written, ``outcome`` is ``unknown`` and everything about the event is left out.
    """

    name: str
    value: Any
    before: Any = Field(default=None, description="What the plan had seen there; left out where it says nothing.")
    outcome: Result
    position: Position | None = None
    recorded_at: str | None = None
    event_id: str | None = None
    action: str | None = None
    run_id: str | None = None
    plan_checksum: Sha256 | None = None
    operation_id: str | None = None
    ordinal: int | None = None
    attempt: int | None = None
    writer_epoch: int | None = None
    source: str | None = None
    actor: str | None = None
    reason: str | None = None
    committed_at: str | None = None
    node_id: str | None = None
    error: str | None = None
    message: str | None = None
    resumed: ResumptionView | None = None
    earlier: list[EarlierView] = Field(description="Newest first; the history has them all.")
    earlier_total: int
    in_doubt: list[DoubtView] = Field(description="Attempts since then whose answer was lost, newest first.")
    in_doubt_total: int


class BlameView(View):
    """Who is behind each value of one object."""

    binding_id: int
    url: str
    branch: str
    object_key: Sha256
    kind: str
    identity: dict[str, Any]
    node_id: str | None
    attributes: list[AttributeView]
    deletes_recorded: list[AssertedView] = Field(description="Deletes that were recorded and not executed.")
    deletes_recorded_total: int
