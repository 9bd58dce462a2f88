"""Where the write surface is tried on both servers by the same code: on a sandbox, and on a real one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.contract.cases.default_branch import require_leave
from tests.contract.cases.recording import place_on
from tests.contract.cases.schema import ensure_probe_kinds, sandbox_document
from tests.contract.cases.talk import Talk
from tests.live.infrahub import LiveInfrahub


@pytest.fixture(scope="module", params=["sandbox", pytest.param("real", marks=pytest.mark.live)])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """Address and token of a server that knows the kinds of the cases."""
    if request.param == "sandbox":
        with RunningSandbox(
            sandbox_document(), token="contract-token", reader_token="reader-token", seed="own ids"
        ) as running:
            yield running.url, running.token
        return
    live: LiveInfrahub = request.getfixturevalue("live_infrahub")
    require_leave(live)
    ensure_probe_kinds(live.url, live.token)
    yield live.url, live.token


@pytest.fixture
def talk(served: tuple[str, str], request: pytest.FixtureRequest) -> Iterator[Talk]:
    """Speaks to a branch of the test's own."""
    with place_on(*served, reader=("not used", "not used")) as place:
        talk = Talk(place, request.node.name)
        yield talk
        talk.close()
