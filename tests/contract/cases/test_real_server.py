"""The recorded answers against a real server: a recording that is no longer true fails here."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.contract.cases.catalogue import CASES
from tests.contract.cases.comparing import differences
from tests.contract.cases.default_branch import require_leave
from tests.contract.cases.recording import Transcript, held_at, place_on, read_answers, recorded_version
from tests.contract.cases.schema import SERVED_FILE, ensure_probe_kinds, served_probe_kinds, without_order
from tests.contract.cases.talk import Place
from tests.live.infrahub import LiveInfrahub

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]
"""A merge takes ten seconds on a machine that does nothing else, and minutes on one that does."""


@pytest.fixture(scope="module")
def place(live_infrahub: LiveInfrahub) -> Iterator[Place]:
    """A branch of the real server that knows the kinds of the cases."""
    require_leave(live_infrahub)
    ensure_probe_kinds(live_infrahub.url, live_infrahub.token)
    with place_on(live_infrahub.url, live_infrahub.token) as place:
        yield place


@pytest.fixture(scope="module")
def answers() -> dict[str, Transcript]:
    return read_answers()


@pytest.mark.parametrize("name", CASES)
def test_the_server_answers_as_it_was_recorded(name: str, place: Place, answers: dict[str, Transcript]) -> None:
    found = differences(name, held_at(place, CASES[name]), answers[name])
    assert [str(item) for item in found] == [], "answers were recorded (shown as the sandbox's) that are no longer true"


def test_the_server_serves_the_kinds_as_they_were_recorded(place: Place) -> None:
    served = served_probe_kinds(place.url, place.token)
    assert without_order(served) == without_order(json.loads(SERVED_FILE.read_text(encoding="utf-8")))


def test_the_recording_is_of_this_version(live_infrahub: LiveInfrahub) -> None:
    version = httpx.get(f"{live_infrahub.url}/api/info", trust_env=False).json()["version"]
    assert version == recorded_version()
