"""What a run of the cases made on a server, and how it is taken away again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

_DEFAULT = "main"
_OURS = "Probe"
_AT_ONCE = 100
"""Ids in one look-up."""

_THERE = "query There($ids: [ID]) { CoreNode(ids: $ids) { edges { node { id __typename } } } }"
_BRANCHES = "query Branches { Branch { name } }"
_DELETE_BRANCH = "mutation B($data: BranchDeleteInput!) { BranchDelete(data: $data) { ok } }"


@dataclass
class Made:
    """The ids of objects on the default branch and the names of branches that answers told of, the oldest first."""

    ids: dict[str, None] = field(default_factory=dict)
    branches: dict[str, None] = field(default_factory=dict)
    _elsewhere: dict[str, dict[str, None]] = field(default_factory=dict)

    def saw(self, path: str, request: Any, answer: Any) -> None:
        """Remember what this answer says was made; what is on a branch goes with it, unless the branch was merged."""
        branch = path.partition("?")[0].removeprefix("/graphql").strip("/") or _DEFAULT
        ids = self.ids if branch == _DEFAULT else self._elsewhere.setdefault(branch, {})
        for payload in _payloads(answer):
            made = payload.get("object")
            if isinstance(made, dict) and isinstance(made.get("id"), str):
                ids[made["id"]] = None
        if not isinstance(request, dict) or not any(payload.get("ok") is True for payload in _payloads(answer)):
            return
        text, variables = str(request.get("query")), request.get("variables") or {}
        if "BranchCreate(" in text:
            self.branches[str(variables["data"]["name"])] = None
        elif "BranchMerge(" in text:
            self.ids.update(self._elsewhere.get(str(variables["name"]), {}))

    def remove(self, http: httpx.Client) -> None:
        """Delete the branches, then what is on the default branch, dependants first; what is gone already is gone."""
        there = {branch["name"] for branch in _answered(http, _BRANCHES, {})["Branch"]}
        for name in reversed(self.branches):
            if name in there:
                _answered(http, _DELETE_BRANCH, {"data": {"name": name}})
        for node_id, kind in list(self.remaining(http)):
            text = f"mutation D($data: DeleteInput!) {{ {kind}Delete(data: $data) {{ ok }} }}"
            # a component goes with its parent, and is then not there any more: only what stays is a fault
            http.post("/graphql/main", json={"query": text, "variables": {"data": {"id": node_id}}})

    def remaining(self, http: httpx.Client) -> Iterator[tuple[str, str]]:
        """Id and kind of each object of ours that is still on the default branch, the newest first.

        Only of the kinds that are there for the cases: whatever went wrong, nobody else's object is among them.
        """
        for some in _parts(reversed(self.ids)):
            edges = _answered(http, _THERE, {"ids": some})["CoreNode"]["edges"]
            kinds = {edge["node"]["id"]: edge["node"]["__typename"] for edge in edges}
            kinds = {node_id: kind for node_id, kind in kinds.items() if kind.startswith(_OURS)}
            yield from ((node_id, kinds[node_id]) for node_id in some if node_id in kinds)


def _payloads(answer: Any) -> Iterator[dict[str, Any]]:
    data = answer.get("data") if isinstance(answer, dict) else None
    for payload in data.values() if isinstance(data, dict) else ():
        if isinstance(payload, dict):
            yield payload


def _parts(ids: Iterable[str]) -> Iterator[list[str]]:
    every = iter(ids)
    while some := list(itertools.islice(every, _AT_ONCE)):
        yield some


def _answered(http: httpx.Client, text: str, variables: dict[str, Any]) -> Any:
    answer = http.post("/graphql/main", json={"query": text, "variables": variables})
    document = answer.json()
    if answer.status_code != 200 or document.get("errors"):
        raise RuntimeError(f"what a run made cannot be taken away: HTTP {answer.status_code} {answer.text[:500]}")
    return document["data"]
