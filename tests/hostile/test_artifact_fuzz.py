"""Any artifact is a valid plan or a named refusal: mutations of valid ones, and structures out of nothing.

The same mutations as in ``make hostile``; here Hypothesis makes the choices, so that a failing one gets smaller.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.artifact_cases import judged
from tests.hostile.artifact_files import Artifact, encode, lines_of, sealed
from tests.hostile.artifact_judge import Judge
from tests.hostile.artifact_mutations import spoiled
from tests.hostile.artifact_oracle import contradictions
from tests.hostile.artifact_plans import CONFIG_VERSION, RUN_ID, manifest, operations, seeds
from tests.hostile.artifact_repairs import REPAIRS
from tests.hostile.artifact_values import NAMES, TEXTS

FUZZ = settings(derandomize=True, max_examples=150, deadline=None, database=None)
"""The same examples in every run; ``make hostile`` looks further."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    judge = Judge(tmp_path_factory.mktemp("hostile"))
    yield judge
    judge.close()


def assert_judged_well(judge: Judge, artifact: Artifact) -> None:
    artifact.write(judge.run_dir)
    case = judged(judge, artifact, judge.commit(artifact), reviewed=True, rendered=True)
    assert case.violations == (), (case.verdict, artifact)


@pytest.mark.rules("G1", "A83", "A87", "C31", "G11", "G12")
@FUZZ
@given(seed=st.integers(0, 2**32))
def test_a_spoiled_plan_is_a_plan_or_a_named_refusal(judge: Judge, seed: int) -> None:
    chance = Random(seed)
    artifact, _ = spoiled(chance.choice(seeds(with_snapshots=False)), chance)
    assert_judged_well(judge, artifact)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(TEXTS)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
RECORDS = st.sampled_from(operations()) | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=7)


@st.composite
def records(draw: st.DrawFn) -> Any:
    """A record out of nothing, or a valid one with keys exchanged, added and taken away."""
    record = dict(draw(RECORDS))
    record.update(draw(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=2)))
    for name in draw(st.lists(st.sampled_from(sorted(record)), max_size=2)) if record else ():
        record.pop(name, None)
    return record


@st.composite
def artifacts(draw: st.DrawFn) -> Artifact:
    """An artifact of such records and manifest keys, repaired in one of the ways in which an attacker would."""
    document = manifest(**draw(st.dictionaries(st.sampled_from(sorted(manifest())), VALUES, max_size=1)))
    told = draw(st.none() | st.lists(records(), max_size=4))
    made = Artifact(
        manifest=encode(document),
        operations=lines_of(draw(st.lists(records(), max_size=5))),
        coverage=None if told is None else lines_of(told),
        snapshots={},
    )
    return draw(st.sampled_from(REPAIRS))(sealed(made), Random(0))


@pytest.mark.rules("A30", "A56", "C14", "C15", "C31", "G11")
@FUZZ
@given(artifact=artifacts())
def test_a_structure_out_of_nothing_is_a_plan_or_a_named_refusal(judge: Judge, artifact: Artifact) -> None:
    assert_judged_well(judge, artifact)


def test_the_oracle_knows_a_valid_plan_from_others() -> None:
    """What is asked of an admitted plan is not nothing: each mutation of one that matters is noticed."""
    valid = seeds(with_snapshots=False)[0]
    assert contradictions(valid, run_id=RUN_ID, config_version=CONFIG_VERSION) == []
    lines = (valid.operations or b"").split(b"\n")[:-1]
    others = [
        b"\n".join(lines),
        b"".join(line + b"\n" for line in lines[::-1]),
        b"".join(line + b"\n" for line in [lines[0], *lines]),
        (valid.operations or b"").replace(b'"name":"prod"}', b'"name":"Prod"}', 1),
        (valid.operations or b"").replace(b'"tier":0', b'"tier":0 '),
        (valid.operations or b"").replace(b'"action":"delete"', b'"action":"remove"'),
    ]
    for data in others:
        assert data != valid.operations
        other = sealed(Artifact(valid.manifest, data, valid.coverage, {}))
        assert contradictions(other, run_id=RUN_ID, config_version=CONFIG_VERSION), data
    assert contradictions(valid, run_id="another", config_version=CONFIG_VERSION)


def test_every_way_to_spoil_a_plan_is_tried_and_both_answers_occur(tmp_path: Path) -> None:
    from tests.hostile.artifacts import run

    tally = run(11, range(300), tmp_path)
    assert tally.violations == []
    assert (tally.cases, 0 < tally.admitted < 300) == (300, True)
    assert len(tally.mutations) >= 20
    assert len(tally.findings) >= 15
