"""States in words and tones, the same ones on every page; the words are those of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Tone = Literal["good", "busy", "warn", "bad", "quiet"]


class State(NamedTuple):
    """How one state looks: its tone, its word, and what it means."""

    tone: Tone
    word: str
    meaning: str


STATES: Mapping[str, State] = {
    # runs
    "open": State("busy", "waiting", "committed; no writer has ended it yet"),
    "running": State("busy", "applying", "a writer carries it out"),
    "applied": State("good", "applied", "every operation was applied or skipped"),
    "stopped": State("warn", "stopped", "stopped between two operations; nothing is in doubt"),
    "failed": State("bad", "failed", "stopped at an operation that is proven to have written nothing"),
    "interrupted": State("bad", "interrupted", "stopped at an operation that may have written"),
    "refused": State("bad", "refused", "its plan was refused, and this attempt wrote nothing"),
    # operations
    "skipped": State("quiet", "skipped", "a recorded delete; it is not executed"),
    "unknown": State("bad", "unknown", "may have written: its answer was lost"),
    "not_attempted": State("quiet", "not attempted", "no request was sent for it"),
    "but_skipped": State("quiet", "all but skipped", "every operation that is no recorded delete"),
    "had_failed": State("bad", "had a failed attempt", "also where a later attempt was applied"),
    "had_unknown": State("bad", "had an unknown attempt", "also where a later attempt was applied"),
    # destinations
    "settled": State(
        "good",
        "last run applied",
        "the last run was applied and no order waits; what the destination or a source changed since is not known here",
    ),
    "applying": State("busy", "applying", "a writer carries out a run"),
    "waiting": State("busy", "orders wait", "a writer is active and has orders to carry out"),
    "no_writer": State("warn", "no writer", "orders wait, and no process holds the lease"),
    "stalled": State("warn", "stalled", "a run was begun, and no process holds the lease"),
    "new": State("quiet", "new", "nothing was ever applied here"),
    # orders, writers and the rest
    "done": State("quiet", "closed", "nothing more follows from it; how its run ended is the state of the run"),
    "carried_out": State("busy", "being carried out", "a writer began with it"),
    "live": State("good", "live", "a process holds the lease"),
    "free": State("quiet", "free", "no process holds the lease"),
    "ok": State("good", "ok", "nothing is wrong"),
    "warning": State("warn", "look at it", "something needs a look"),
    "bad": State("bad", "wrong", "something is wrong"),
}


def tone(name: str) -> Tone:
    """How a state is coloured; one that is not known is quiet."""
    return STATES[name].tone if name in STATES else "quiet"


def word(name: str) -> str:
    """The word for a state."""
    return STATES[name].word if name in STATES else name.replace("_", " ")


def described(name: str) -> str:
    """What a state means; empty for one that is not known."""
    return STATES[name].meaning if name in STATES else ""
