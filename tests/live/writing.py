"""Our writer in this process, before a real Infrahub and mostly behind a relay; and the truth to judge it by."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch
from tests.support.real_writer import WriterOnLedger

PATIENT = {"request_timeout": 20.0, "lease_ttl": 30.0, "settle_seconds": 0.5}
"""Times of a writer that no slow server makes give up; nothing of its own is ever late."""
_ENDINGS = ("run.applied", "run.failed", "run.interrupted", "run.stopped", "plan.refused")
_STEP = 0.02


@dataclass(kw_only=True)
class LiveWriter(WriterOnLedger):
    """A writer whose ``url`` may lead through a relay; ``live`` is the branch itself."""

    live: LiveBranch

    def names(self, kind: str) -> list[str]:
        """The names of all objects of a kind, straight from the server; what it counts without showing is unnamed.

        Two objects of one id are one row, and two in the count.
        """
        found = self.live.query(f"query {{ {kind} {{ count edges {{ node {{ name {{ value }} }} }} }} }}")[kind]
        named = sorted(edge["node"]["name"]["value"] for edge in found["edges"])
        return named + ["unnamed"] * (found["count"] - len(named))

    def site(self, node_id: str) -> dict[str, Any]:
        """Description and tags of a site, straight from the server; its count of tags beside the tags themselves."""
        text = """query($ids: [ID]) { LocationSite(ids: $ids) { edges { node {
            description { value } tags { count edges { node { id } } } } } } }"""
        (edge,) = self.live.query(text, {"ids": [node_id]})["LocationSite"]["edges"]
        node = edge["node"]
        tags = sorted(peer["node"]["id"] for peer in node["tags"]["edges"])
        return {"description": node["description"]["value"], "tags": tags, "count": node["tags"]["count"]}

    def holds(self, operation: PlannedOperation) -> bool:
        """Whether the server holds the object of a create, or the description that an update gives to a site."""
        payload = operation.payload or {}
        if operation.action == "update":
            return bool(self.site(str(operation.destination_id))["description"] == payload["description"])
        return payload["name"] in self.names(operation.kind)

    async def ended(self, run_id: str, *, resume: bool = True) -> list[str]:
        """Wait until writers elsewhere have applied a run; its endings.

        It is resumed whenever it is interrupted, unless whoever takes over from a dead writer goes on by itself.
        """
        seen: list[str] = []
        while not seen or seen[-1] == "run.interrupted":
            found = [kind for kind in await self.kinds(run_id) if kind in _ENDINGS]
            if len(found) == len(seen):
                await asyncio.sleep(_STEP)
                continue
            seen = found
            if resume and seen[-1] == "run.interrupted":
                await self.resume(run_id)
        return seen


def create(branch: LiveBranch, kind: str, **data: Any) -> str:
    """Put an object into a branch; returns its id."""
    text = f"mutation($data: {kind}CreateInput!) {{ {kind}Create(data: $data) {{ ok object {{ id }} }} }}"
    node_id: str = branch.query(text, {"data": data})[f"{kind}Create"]["object"]["id"]
    return node_id
