"""One case from its number: a hostile artifact on disk, judged both ways, and what is wrong with the verdict."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ledger.commit import PlanCommit
from tests.hostile.artifact_files import Artifact
from tests.hostile.artifact_judge import (
    CANARY,
    Judge,
    Review,
    Verdict,
    faults_of_text,
    faults_of_words,
    review,
)
from tests.hostile.artifact_mutations import spoiled
from tests.hostile.artifact_oracle import contradictions
from tests.hostile.artifact_plans import CONFIG_VERSION, RUN_ID, seeds

RENDERED = 0.05
"""Share of the cases whose review is also printed in all forms; printing costs more than judging."""

REVIEWED = 0.3
"""Share of the cases that are also read for review where the writer refused them."""

WITH_SNAPSHOTS = 0.002
"""Share of the cases that are bound to a snapshot: each costs a process that reads it."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a case was and what became of it; ``violations`` is empty where all is well."""

    made_by: str
    verdict: Verdict
    violations: tuple[str, ...]


def run_case(judge: Judge, seed: int, number: int) -> Case:
    """The case of this seed and number, always the same one."""
    chance = Random(f"{seed}:{number}")
    with_snapshots = chance.random() < WITH_SNAPSHOTS
    start = chance.choice(seeds(with_snapshots=with_snapshots))
    artifact, made_by = spoiled(start, chance)
    committed = artifact if chance.random() < 0.9 else start
    depth = chance.random()
    artifact.write(judge.run_dir)
    commit = judge.commit(committed)
    case = judged(judge, artifact, commit, reviewed=depth < REVIEWED, rendered=depth < RENDERED)
    return Case(made_by, case.verdict, case.violations)


def judged(judge: Judge, artifact: Artifact, commit: PlanCommit, *, reviewed: bool, rendered: bool) -> Case:
    """Let the writer and a reviewer look at an artifact that is on disk, and list what is wrong with what they say.

    An artifact that the writer admits is always reviewed too; ``rendered`` reviews are printed in all forms.
    """
    before = _listing(judge)
    verdict = judge.judge(commit)
    violations = [*_faults(verdict, artifact)]
    if reviewed or verdict.admitted:
        violations += _review_faults(verdict, review(judge.run_dir, rendered=rendered))
    violations += _traces(judge, before)
    return Case("", verdict, tuple(violations))


def _faults(verdict: Verdict, artifact: Artifact) -> Iterator[str]:
    if verdict.admitted:
        yield from contradictions(artifact, run_id=RUN_ID, config_version=CONFIG_VERSION)
        if CANARY.encode() in (artifact.operations or b""):
            yield "a secret in an admitted plan"
        return
    yield from faults_of_words(verdict.findings)
    if verdict.exit_code != 3:
        yield f"exit code {verdict.exit_code}"


def _review_faults(verdict: Verdict, seen: Review) -> Iterator[str]:
    if verdict.admitted and (seen.refusal or seen.findings):
        yield f"admitted, and the review refuses it: {seen.refusal or seen.findings[0]}"
    if seen.refusal or seen.findings:
        yield from (f"review: {fault}" for fault in faults_of_words(seen.findings))
        if verdict.admitted is False and seen.refusal and seen.refusal not in _REVIEW_REFUSALS:
            yield f"the review refuses with {seen.refusal}"
    for text in seen.texts:
        yield from (f"printed: {fault}" for fault in faults_of_text(text))


_REVIEW_REFUSALS = frozenset(
    {
        "TornPlanArtifactError",
        "UnrecognisedPlanFormatError",
        "UnsupportedOperationActionError",
        "PlanArtifactAbsentError",
        "PlanArtifactUnreadableError",
        "PathOutsideRunError",
    }
)


def _traces(judge: Judge, before: tuple[frozenset[str], ...]) -> Iterator[str]:
    if judge.wrote_anything():
        yield "something was written to the ledger or sent to the destination"
    if _listing(judge) != before:
        yield "a file was made or removed"


def _listing(judge: Judge) -> tuple[frozenset[str], ...]:
    folders = (judge.root, judge.run_dir, judge.run_dir / "plan")
    return tuple(frozenset(os.listdir(folder)) if folder.is_dir() else frozenset() for folder in folders)
