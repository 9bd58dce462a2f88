"""What happened to a run as a whole, told from its events; the pages and the command line tell it alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from ledger.audit.bodies import parsed_object
from ledger.store.pages import RunMark


class Step(NamedTuple):
    """One thing that happened to a run as a whole; texts are empty where the event says nothing.

    Attributes:
        position: of the event.
        word: what happened.
        at: when it was recorded.
        by: who ordered it, or the writer where it acted by itself.
        reason: why, in the words of who ordered it.
        policy: with which it goes on, in a line.
        detail: where the run stood, or what refused it.
    """

    position: int
    word: str
    at: datetime
    by: str
    reason: str
    policy: str
    detail: str


_STEPS: Mapping[str, str] = {
    "plan.committed": "committed",
    "plan.refused": "refused",
    "run.started": "started",
    "run.resumed": "resumed",
    "run.stopped": "stopped",
    "run.applied": "applied",
    "run.failed": "failed",
    "run.interrupted": "interrupted",
}


def steps(marks: Sequence[RunMark]) -> list[Step]:
    """What happened to a run, in the order of the marks; the bodies may be of a program that is newer than this one."""
    found = []
    for mark in marks:
        body = parsed_object(mark.body) or {}
        commit = body.get("commit")
        said = commit if isinstance(commit, dict) else body
        found.append(
            Step(
                mark.position,
                _STEPS.get(mark.kind, mark.kind),
                mark.recorded_at,
                _text(said.get("by")) or _text(said.get("actor")),
                _text(said.get("reason")),
                policy_words(said.get("policy")),
                _detail(body),
            )
        )
    return found


def policy_words(policy: object) -> str:
    """A policy in a line; empty for what is none."""
    if not isinstance(policy, dict):
        return ""
    words = [f"{name.replace('_', ' ')} {value}" for name, value in policy.items() if isinstance(value, str)]
    return ", ".join([*words, *(name.replace("_", " ") for name, value in policy.items() if value is True)])


def _detail(body: Mapping[str, Any]) -> str:
    """Where a run stood then, or what refused it, as far as the body says it."""
    findings = body.get("findings")
    if isinstance(findings, list):
        names = (_text(finding.get("name")) for finding in findings if isinstance(finding, dict))
        return ", ".join(dict.fromkeys(name for name in names if name))
    begins, last, failed = body.get("from_ordinal"), body.get("last_ordinal"), _text(body.get("failed_operation"))
    if type(begins) is int:
        return f"from operation {begins:,} on"
    if failed and type(last) is int:
        return f"at operation {last:,} ({failed})"
    if type(last) is int and "by" in body:
        return f"after operation {last:,}"
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
