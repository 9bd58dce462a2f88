"""The projection ``bindings``: one document per binding. Lease and in-flight mark are no part of it: no events."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ledger.events import TERMINAL_KINDS, StoredEvent, WriterOpened
from ledger.projections.fold import Fold, Key, Projection, State, body_of, is_recognised, moment_of


class Writer(BaseModel):
    """The process that claimed the binding last."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    epoch: int
    process_id: str
    host: str
    position: int


class RunMark(BaseModel):
    """Something that happened to a run."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    run_id: str
    kind: str
    position: int
    at: str


class BindingStatus(State):
    """What a binding's log says about it.

    Attributes:
        position: of its newest event.
        at: when that was recorded.
        writer: the last claim.
        last_commit: the newest commit.
        last_start: the newest start or resumption.
        last_end: the newest end of a run.
        last_applied: the newest run that was applied to its end.
        unrecognised: kinds of events that this program does not know, and how many of each.
    """

    at: str
    writer: Writer | None = None
    last_commit: RunMark | None = None
    last_start: RunMark | None = None
    last_end: RunMark | None = None
    last_applied: RunMark | None = None
    unrecognised: dict[str, int] = Field(default_factory=dict)


def _key(_: StoredEvent) -> Key:
    return Key("", "")


def _step(state: BindingStatus | None, event: StoredEvent) -> BindingStatus:
    before = state or BindingStatus(position=0, at="")
    changes: dict[str, Any] = {"position": event.position, "at": moment_of(event)}
    if not is_recognised(event):
        seen = before.unrecognised.get(event.kind, 0)
        changes["unrecognised"] = {**before.unrecognised, event.kind: seen + 1}
    elif event.kind == "writer.opened":
        body = body_of(event)
        if isinstance(body, WriterOpened):
            changes["writer"] = Writer(
                epoch=body.epoch, process_id=body.process_id, host=body.host, position=event.position
            )
    elif event.run_id is not None:
        mark = RunMark(run_id=event.run_id, kind=event.kind, position=event.position, at=moment_of(event))
        changes |= dict.fromkeys(_places(event.kind), mark)
    return before.model_copy(update=changes)


def _places(kind: str) -> list[str]:
    if kind == "plan.committed":
        return ["last_commit"]
    if kind in ("run.started", "run.resumed"):
        return ["last_start"]
    if kind in TERMINAL_KINDS:
        return ["last_end", "last_applied"] if kind == "run.applied" else ["last_end"]
    return []


BINDING_FOLD = Fold(model=BindingStatus, key=_key, step=_step)
BINDINGS = Projection(name="bindings", version=1, folds=(BINDING_FOLD,))
