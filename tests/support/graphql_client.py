"""A plain client of Infrahub's GraphQL, for tests that look at the wire."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

import httpx

from consumers.infrahub.sandbox import RunningSandbox


class GraphQLClient:
    """Speaks to a sandbox over HTTP, one constant text per mutation, values in variables."""

    def __init__(self, sandbox: RunningSandbox, *, branch: str = "main") -> None:
        headers = {"X-INFRAHUB-KEY": sandbox.token}
        self.http = httpx.Client(base_url=sandbox.url, headers=headers, trust_env=False, timeout=20)
        self.branch = branch

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.http.close()

    def post(self, query: str, variables: dict[str, Any] | None = None) -> httpx.Response:
        """One request, answered by whatever the server says."""
        return self.http.post(f"/graphql/{self.branch}", json={"query": query, "variables": variables or {}})

    def query(self, query: str, variables: dict[str, Any] | None = None) -> Any:
        """The ``data`` of a request that must succeed."""
        document = self.post(query, variables).json()
        if "errors" in document:
            raise AssertionError(document["errors"])
        return document["data"]

    def mutate(self, name: str, data: dict[str, Any], below: str = "ok object { id }") -> dict[str, Any]:
        """The whole answer of one mutation."""
        text = f"mutation Apply($data: {_input_name(name)}!) {{ {name}(data: $data) {{ {below} }} }}"
        document: dict[str, Any] = self.post(text, {"data": data}).json()
        return document

    def write(self, name: str, data: dict[str, Any]) -> str:
        """The id that a mutation which must succeed answers with."""
        document = self.mutate(name, data)
        if "errors" in document:
            raise AssertionError(document["errors"])
        node_id: str = document["data"][name]["object"]["id"]
        return node_id

    def refused(self, name: str, data: dict[str, Any]) -> dict[str, Any]:
        """The one error of a mutation that must fail."""
        below = "ok" if name.endswith("Delete") else "ok object { id }"
        document = self.mutate(name, data, below)
        errors: list[dict[str, Any]] = document.get("errors", [])
        if len(errors) != 1:
            raise AssertionError(document)
        return errors[0]

    def node(self, kind: str, node_id: str, below: str) -> Any:
        """One object by id, None where there is none."""
        text = f"query Read($ids: [ID]) {{ {kind}(ids: $ids) {{ edges {{ node {{ {below} }} }} }} }}"
        edges = self.query(text, {"ids": [node_id]})[kind]["edges"]
        return edges[0]["node"] if edges else None


def _input_name(mutation: str) -> str:
    return "DeleteInput" if mutation.endswith("Delete") else f"{mutation}Input"


def values(**fields: Any) -> dict[str, Any]:
    """Attribute values as a mutation takes them."""
    return {name: {"value": value} for name, value in fields.items()}
