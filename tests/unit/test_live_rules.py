"""Each rule of what a planned write does is shown on a real server, or it is said why nothing is to be seen there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.rules_document import Proof, proofs_of, read_catalogue

RULES = [f"P{number}" for number in range(17, 100)]


def seen_live() -> set[str]:
    """The rules that a test of ``make live`` proves."""
    return {number for number, proofs in proofs_of().items() if any(proof.is_live for proof in proofs)}


def test_a_live_test_proves_each_of_them_or_there_is_nothing_to_see() -> None:
    rules, _ = read_catalogue()
    live = seen_live()
    unseen = [rule for rule in RULES if rule not in live]
    assert [rule for rule in unseen if not (rules[rule].nothing_to_show or rules[rule].not_on_a_server)] == []


def test_a_rule_that_a_live_test_proves_has_no_excuse() -> None:
    rules, _ = read_catalogue()
    live = seen_live()
    assert [number for number, rule in rules.items() if rule.not_on_a_server and number in live] == []


CONFTEST = """
import pytest

@pytest.fixture(params=["here", pytest.param("there", marks=pytest.mark.live)])
def served(request): ...

@pytest.fixture
def talk(served): ...
"""
BY_MODULE = """
import pytest
pytestmark = [pytest.mark.live, pytest.mark.rules("P1")]

def test_it(): ...
"""
BY_ITSELF = """
import pytest

@pytest.mark.live
@pytest.mark.rules("P1")
async def test_live(): ...

@pytest.mark.live_crash
@pytest.mark.rules("P1")
def test_crash(): ...

@pytest.mark.rules("P1")
def test_unmarked(): ...

@pytest.mark.rules("P1")
def test_on_both(talk): ...

@pytest.mark.live
@pytest.mark.rules("P1")
class TestClass:
    def test_within(self): ...
"""


@pytest.mark.parametrize(("folder", "counts"), [("live", True), ("elsewhere", False)])
def test_only_what_make_live_runs_counts(folder: str, counts: bool, tmp_path: Path) -> None:
    place = tmp_path / folder
    place.mkdir()
    (place / "conftest.py").write_text(CONFTEST)
    (place / "test_a.py").write_text(BY_MODULE)
    (place / "test_b.py").write_text(BY_ITSELF)
    found = proofs_of(tmp_path, [tmp_path / "live"])["P1"]
    assert found == [
        Proof("test_a.py::test_it", counts),
        Proof("test_b.py::test_live", counts),
        Proof("test_b.py::test_crash", is_live=False),
        Proof("test_b.py::test_unmarked", is_live=False),
        Proof("test_b.py::test_on_both", counts),
        Proof("test_b.py::test_within", counts),
    ]
