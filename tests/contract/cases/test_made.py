"""A run of the cases on somebody's server leaves nothing but kinds: objects, branches and accounts go again."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.contract.cases.catalogue import CASES
from tests.contract.cases.recording import held_at, place_on
from tests.contract.cases.schema import PROBE_FILE, declared_kinds, sandbox_document
from tests.contract.cases.talk import Place

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


def state(url: str, token: str) -> Any:
    """What the default branch holds of the kinds of the cases, and which branches there are."""
    text = f"query State {{ Branch {{ name }} {_COUNTS} }}"
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


def left(place: Place, http: httpx.Client, *, is_real: bool) -> list[str]:
    """What is there of a run: objects on the default branch, branches, the account. Others may be at work beside it."""
    text = "query Left { Branch { name } }"
    if is_real:
        text = f'query Left {{ Branch {{ name }} CoreAccount(name__value: "{place.run}-reader") {{ count }} }}'
    data = http.post("/graphql/main", json={"query": text}).raise_for_status().json()["data"]
    objects = [kind for _, kind in place.made.remaining(http)]
    branches = [branch["name"] for branch in data["Branch"] if branch["name"].startswith(place.run)]
    return objects + branches + ["CoreAccount"] * data.get("CoreAccount", {"count": 0})["count"]


def test_what_a_run_made_is_taken_away_again(served: tuple[str, str]) -> None:
    url, token = served
    is_real = token != "contract-token"
    with httpx.Client(base_url=url, headers={"X-INFRAHUB-KEY": token}, trust_env=False, timeout=120) as http:
        with place_on(url, token, reader=None if is_real else ("reader-token", "old")) as place:
            for name in WRITING:
                held_at(place, CASES[name])
            made = left(place, http, is_real=is_real)
            assert {"ProbeTag", "ProbeAlpha", place.branch} <= {*made}
            assert ("CoreAccount" in made) is is_real
        assert left(place, http, is_real=is_real) == []
