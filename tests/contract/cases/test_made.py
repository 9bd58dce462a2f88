"""A run of the cases on somebody's server leaves nothing but kinds: objects, branches and accounts go again."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.contract.cases.catalogue import CASES
from tests.contract.cases.recording import held_at, place_on
from tests.contract.cases.schema import PROBE_FILE, declared_kinds, sandbox_document

pytestmark = pytest.mark.contract

WRITING = (
    "branch/key-made-on-main-after-the-fork",
    "branch/deleted-on-the-branch",
    "branch/query-parameter",
    "generic/constraint-of-siblings-on-main",
    "access/account-without-a-role-reads-main",
)
"""Cases that write to the default branch and take no merge, which takes long on a real server."""

_COUNTS = " ".join(f"{kind} {{ count }}" for kind in declared_kinds(PROBE_FILE))


def state(url: str, token: str, *extra: str) -> Any:
    """What the default branch holds of the kinds of the cases, and which branches there are."""
    text = f"query State {{ Branch {{ name }} {' '.join(extra)} {_COUNTS} }}"
    answer = httpx.post(
        f"{url}/graphql/main", json={"query": text}, headers={"X-INFRAHUB-KEY": token}, trust_env=False, timeout=120
    )
    data = answer.raise_for_status().json()["data"]
    return {**data, "Branch": sorted(branch["name"] for branch in data["Branch"])}


def test_every_case_that_writes_to_the_default_branch_is_undone_on_a_sandbox() -> None:
    with RunningSandbox(
        sandbox_document(), token="contract-token", reader_token="reader-token", seed="made"
    ) as running:
        before = state(running.url, running.token), running.store.content()
        with place_on(running.url, running.token, reader=("reader-token", "old")) as place:
            for case in CASES.values():
                if case.group in ("access", "branch", "generic", "merge"):
                    held_at(place, case)
            assert state(running.url, running.token) != before[0]
        assert (state(running.url, running.token), running.store.content()) == before


def test_what_a_run_made_is_taken_away_again(served: tuple[str, str]) -> None:
    url, token = served
    is_real = not token.startswith("contract")
    accounts = ("CoreAccount { count }",) if is_real else ()
    before = state(url, token, *accounts)
    with place_on(url, token, reader=None if is_real else ("not used", "not used")) as place:
        for name in WRITING:
            held_at(place, CASES[name])
        assert state(url, token, *accounts) != before
    assert state(url, token, *accounts) == before
