"""What a live test is given: a real Infrahub, and a branch of its own on it."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx

ADDRESS, TOKEN, HOME = (f"APPLY_LEDGER_TEST_INFRAHUB_{name}" for name in ("ADDRESS", "TOKEN", "HOME"))
"""Never ``INFRAHUB_ADDRESS``: that may be somebody's production."""

_CREATE = """mutation($name: String!) {
  BranchCreate(wait_until_completion: true, data: {name: $name, sync_with_git: false}) { ok }
}"""
_DELETE = "mutation($name: String!) { BranchDelete(data: {name: $name}) { ok } }"


@dataclass(frozen=True)
class LiveInfrahub:
    """A server that holds the tests' schema; anything may be written to branches that a test makes on it."""

    url: str
    token: str
    is_thrown_away: bool = False
    """Whether the server was started for these tests and ends with them."""

    def post(self, query: str, variables: dict[str, Any] | None = None, *, branch: str = "main") -> httpx.Response:
        """One GraphQL request, answered by whatever the server says; one that it shed never ran, and is sent again."""
        while True:
            answer = httpx.post(
                f"{self.url}/graphql/{branch}",
                json={"query": query, "variables": variables or {}},
                headers={"X-INFRAHUB-KEY": self.token},
                trust_env=False,
                timeout=120,
            )
            if answer.headers.get("x-infrahub-admission") != "shed":
                return answer
            time.sleep(float(answer.headers.get("retry-after", "1")))  # as it asks; the test's own limit ends it

    def query(self, query: str, variables: dict[str, Any] | None = None, *, branch: str = "main") -> Any:
        """The ``data`` of a request that must succeed."""
        answer = self.post(query, variables, branch=branch)
        document = answer.json()
        if answer.status_code != 200 or document.get("errors"):
            raise AssertionError(f"HTTP {answer.status_code}: {document}")
        return document["data"]

    def new_branch(self, prefix: str = "test") -> LiveBranch:
        """A branch that nobody else has, forked from main as it is now."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        self.query(_CREATE, {"name": name})
        return LiveBranch(self, name)


@dataclass(frozen=True)
class LiveBranch:
    """One branch of the server."""

    infrahub: LiveInfrahub
    name: str

    @property
    def url(self) -> str:
        """The server's address."""
        return self.infrahub.url

    @property
    def token(self) -> str:
        """The administrator's token."""
        return self.infrahub.token

    def post(self, query: str, variables: dict[str, Any] | None = None) -> httpx.Response:
        """One GraphQL request to this branch."""
        return self.infrahub.post(query, variables, branch=self.name)

    def query(self, query: str, variables: dict[str, Any] | None = None) -> Any:
        """The ``data`` of a request to this branch that must succeed."""
        return self.infrahub.query(query, variables, branch=self.name)

    def discard(self) -> None:
        """Remove it, unless the whole server goes away: a removal takes seconds."""
        if not self.infrahub.is_thrown_away:
            self.infrahub.query(_DELETE, {"name": self.name})


def given_infrahub() -> LiveInfrahub:
    """The server that the variables name.

    Raises:
        RuntimeError: they name none. A live test that was asked for is never skipped.
    """
    url, token = os.environ.get(ADDRESS), os.environ.get(TOKEN)
    if not url or not token:
        raise RuntimeError(
            f"a live test needs a server: run `make live`, which starts one, or set {ADDRESS} and {TOKEN}"
            " to a test server that holds tests/data/schema.yml"
        )
    return LiveInfrahub(url.rstrip("/"), token, is_thrown_away=HOME in os.environ)
