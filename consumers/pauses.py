"""Named points of the writer at which tests may hold, freeze or kill it.

Fault tests pass a hook; in service nothing is passed and nothing happens. The names are the vocabulary of the tests
"killed at X" and "frozen at X". There is no way to reach a hook from the environment or from a configuration file.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class PausePoint(StrEnum):
    """Points of a writer, in the order of a run."""

    BEFORE_CLAIM = "before_claim"
    AFTER_CLAIM = "after_claim"
    AT_TAKE_OVER = "at_take_over"
    AFTER_TAKE_OVER = "after_take_over"
    BEFORE_GATE = "before_gate"
    BEFORE_PLAN_STORED = "before_plan_stored"
    BEFORE_RUN_STARTED = "before_run_started"
    AFTER_RUN_STARTED = "after_run_started"
    BEFORE_DISPATCH = "before_dispatch"
    AFTER_GUARD = "after_guard"
    AFTER_WRITE_BEFORE_APPEND = "after_write_before_append"
    INSIDE_APPEND = "inside_append"
    AFTER_APPEND = "after_append"
    BEFORE_TERMINAL = "before_terminal"
    AFTER_TERMINAL = "after_terminal"
    BEFORE_RELEASE = "before_release"


class PauseHook(Protocol):
    """What a test puts in."""

    async def reached(self, point: PausePoint) -> None:
        """Called at every point but ``AFTER_GUARD``."""
        ...

    def reached_guard(self) -> None:
        """Called at ``AFTER_GUARD``: synchronous, because nothing may run between the check and the socket write."""
        ...


class NoPause:
    """The hook of a writer in service."""

    async def reached(self, point: PausePoint) -> None:
        """Go on."""

    def reached_guard(self) -> None:
        """Go on."""
