"""The write surface alone, on a branch of a real Infrahub: no ledger, no gate, one operation after the other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.infrahub.peers import InfrahubPeerResolver
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.plan.model import PlannedOperation
from ledger.schema import DestinationSchema
from tests.live.infrahub import LiveBranch
from tests.support.http_relay import HttpRelay
from tests.support.scripted_infrahub import RUN_ID, Guard


@dataclass(frozen=True)
class LiveSurface:
    """A surface of one run and one resolver; the relay before the server shows what was sent."""

    branch: LiveBranch
    relay: HttpRelay
    surface: InfrahubWriteSurface
    peers: InfrahubPeerResolver
    schema: DestinationSchema

    async def apply(self, *operations: PlannedOperation) -> list[str]:
        """Write operations in this run; their node ids."""
        return [
            await self.surface.apply_planned_operation(operation=operation, peers=self.peers)
            for operation in operations
        ]

    def mutations(self) -> list[dict[str, Any]]:
        """The variables of every mutation that was sent, in order."""
        sent = [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.queries(b"mutation")]
        return [document["variables"] for document in sent]

    def queries(self, word: bytes = b"") -> list[bytes]:
        """The GraphQL requests that hold a word."""
        return [request for request in self.relay.requests if request.startswith(b"POST") and word in request]

    def read(self, kind: str, node_id: str, below: str) -> Any:
        """Fields of one object, straight from the server; None where there is none."""
        text = f"query($ids: [ID]) {{ {kind}(ids: $ids) {{ edges {{ node {{ {below} }} }} }} }}"
        edges = self.branch.query(text, {"ids": [node_id]})[kind]["edges"]
        return edges[0]["node"] if edges else None

    def count(self, kind: str) -> int:
        """How many objects of a kind there are."""
        found: int = self.branch.query(f"query {{ {kind} {{ count }} }}")[kind]["count"]
        return found


@asynccontextmanager
async def live_surface(branch: LiveBranch, relay: HttpRelay, *, run_id: str = RUN_ID) -> AsyncIterator[LiveSurface]:
    """The surface as the writer opens it, with a resolver that knows nothing yet."""
    settings = InfrahubSettings(url=relay.url, branch=branch.name, token=SecretStr(branch.token))
    opener = InfrahubOpener(declared(settings))
    async with opener(settings.binding, run_id=run_id, guard=Guard()) as destination:
        surface = destination.writes
        assert isinstance(surface, InfrahubWriteSurface)
        yield LiveSurface(branch, relay, surface, surface.new_peer_resolver(), destination.schema)
