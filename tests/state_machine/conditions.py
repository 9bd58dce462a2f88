"""For which bindings a rule of the machine is meant."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Protocol

from hypothesis.stateful import precondition

from tests.state_machine import facts
from tests.state_machine.model import SUCCESSES
from tests.state_machine.sides import Side


class Driven(Protocol):
    """A machine with its bindings."""

    sides: list[Side]


def some(condition: Callable[[Side], object]) -> Callable[[Callable[..., None]], Any]:
    """A rule for those bindings alone that are in such a state; the drawn ``at`` chooses among them."""

    def decorate(apply: Callable[..., None]) -> Any:
        @wraps(apply)
        def chosen(self: Driven, at: int, **drawn: Any) -> None:
            sides = [side for side in self.sides if condition(side)]
            apply(self, sides[at % len(sides)], **drawn)

        return precondition(lambda self: any(condition(side) for side in self.sides))(chosen)

    return decorate


def leased(side: Side) -> object:
    """Somebody claimed it once."""
    return side.leases


def held(side: Side) -> object:
    """It has a lease, live or not."""
    return side.model.owner


def in_doubt(side: Side) -> object:
    """An operation is in flight."""
    return side.model.mark


def ordered(side: Side) -> object:
    """Something stands in its inbox, and somebody claimed it once."""
    return side.leases and side.model.inbox


def dispatchable(side: Side) -> object:
    """Nothing is in flight, and there is something to dispatch."""
    return side.model.mark is None and any(side.next_mark(run_id) for run_id in facts.RUNS)


def deleting(side: Side) -> object:
    """There are recorded deletes without an outcome."""
    return side.leases and any(side.deletes_left(run_id) for run_id in facts.RUNS)


def started(side: Side) -> object:
    """A run was started, and nothing is in flight."""
    return side.model.mark is None and any(side.starts(run_id) for run_id in facts.RUNS)


def successful(side: Side) -> object:
    """An operation succeeded."""
    return any(event.kind in SUCCESSES for event, _ in side.model.log)


def answered(side: Side) -> object:
    """An append was answered once."""
    return side.calls
