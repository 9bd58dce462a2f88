"""Every hostile plan of the corpus: its named refusal for the writer, exit 3, words, and no trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.artifact_cases import judged
from tests.hostile.artifact_corpus import CORPUS, start_of
from tests.hostile.artifact_corpus_files import SIZES
from tests.hostile.artifact_files import Artifact
from tests.hostile.artifact_judge import Judge, review
from tests.hostile.artifact_plans import accounted_plan, covered_plan, golden_plan
from tests.support.plans import GOLDEN_NAMES


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    judge = Judge(tmp_path / "root")
    yield judge
    judge.close()


@pytest.mark.rules("G1", "A87", "A91")
@pytest.mark.parametrize("name", ["accounted", "covered", *GOLDEN_NAMES])
def test_the_plans_that_are_spoiled_are_valid(judge: Judge, name: str) -> None:
    own = {"accounted": accounted_plan, "covered": covered_plan}
    artifact = own[name]() if name in own else golden_plan(name)
    artifact.write(judge.run_dir)
    case = judged(judge, artifact, judge.commit(artifact), reviewed=True, rendered=True)
    assert (case.verdict.refusal, case.verdict.findings, case.violations) == ("", (), ())


@pytest.mark.rules("A8", "A9", "A10", "A12", "A14", "A15", "A83", "C16", "C31", "G11", "G12", "P105", "P119")
@pytest.mark.parametrize("name", [name for name, case in CORPUS.items() if case not in SIZES])
def test_ff35_each_hostile_plan_is_a_named_refusal_before_the_first_write(judge: Judge, name: str) -> None:
    case = CORPUS[name]
    start = start_of(case)
    start.write(judge.run_dir)
    case.spoil(judge.run_dir)
    spoiled = Artifact.of(judge.run_dir) if case.refusal == "RunRefusedError" else start
    commit = judge.commit(start if "committed" in name else spoiled)
    found = judged(judge, spoiled, commit, reviewed=True, rendered=True)
    assert found.violations == ()
    assert found.verdict.refusal == case.refusal
    assert case.finding in found.verdict.names, found.verdict.findings
    assert found.verdict.exit_code == 3


@pytest.mark.rules("A12", "G11")
def test_words_about_a_run_in_a_folder_with_a_hostile_name_are_printable(tmp_path: Path) -> None:
    judge = Judge(tmp_path / "a\x1b[31m\u202eb\u2028c\nd")
    accounted_plan().write(judge.run_dir)
    CORPUS["a pipe in the place of plan/manifest.json"].spoil(judge.run_dir)
    case = judged(judge, accounted_plan(), judge.commit(accounted_plan()), reviewed=True, rendered=True)
    judge.close()
    assert case.violations == ()
    assert case.verdict.refusal == review(judge.run_dir).refusal == "PlanArtifactUnreadableError"
