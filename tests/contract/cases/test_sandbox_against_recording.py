"""The sandbox against the recorded answers of a real server: equal, but for the differences that are listed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.contract.cases.catalogue import CASES
from tests.contract.cases.comparing import differences, unlisted, vanished
from tests.contract.cases.intended import INTENDED
from tests.contract.cases.recording import Transcript, held_at, place_on, read_answers
from tests.contract.cases.schema import sandbox_document
from tests.contract.cases.talk import Place

pytestmark = pytest.mark.contract


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A sandbox with the kinds of the inventories and of the cases, and a branch in it."""
    with (
        RunningSandbox(
            sandbox_document(), token="contract-token", reader_token="reader-token", seed="contract"
        ) as running,
        place_on(running.url, running.token, reader=("reader-token", "a token of long ago")) as place,
    ):
        yield place


@pytest.fixture(scope="module")
def answers() -> dict[str, Transcript]:
    return read_answers()


@pytest.mark.parametrize("name", CASES)
def test_the_sandbox_answers_as_the_server_did(name: str, place: Place, answers: dict[str, Transcript]) -> None:
    found = differences(name, answers[name], held_at(place, CASES[name]))
    assert [str(item) for item in unlisted(found)] == []
    assert [f"{entry.case} {entry.where}" for entry in vanished(name, found)] == [], "listed, and no longer there"


def test_every_case_is_recorded_and_nothing_else_is(answers: dict[str, Transcript]) -> None:
    assert sorted(answers) == sorted(CASES)


def test_every_intended_difference_is_about_a_case_and_has_a_reason() -> None:
    assert [entry for entry in INTENDED if entry.case not in CASES or len(entry.reason) < 20] == []
