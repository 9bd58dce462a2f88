"""The same creates on a branch, one after the other: by our writer, by infrahub-sdk, and with nothing around them."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from infrahub_sdk import Config, InfrahubClientSync

from consumers.infrahub.known_schemas import KnownSchemas
from consumers.infrahub.transport import KEEPALIVE_SECONDS
from consumers.ports import StoreConnector
from ledger.binding import DestinationBinding
from ledger.plan.model import PlannedOperation
from ledger.store.embedded import Dsns
from ledger.store.ledger import Ledger
from tests.bench.destination import REQUEST_TIMEOUT, inventory, opener
from tests.bench.live.place import Place
from tests.bench.unrecorded import unrecorded_seconds
from tests.bench.writer_runs import WriterRuns
from tests.live.infrahub import LiveBranch
from tests.live.reading import ObjectKey, key_of

_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass
class Loops:
    """Each call writes objects that were never there to a branch of its own, and gives the seconds that it took."""

    place: Place
    dsns: Dsns
    ledger: Ledger
    root: Path
    known: KnownSchemas = field(default_factory=KnownSchemas)
    """What a worker knows from the run before: schemas that have not changed."""
    _names: int = 0

    @property
    def count(self) -> int:
        """Operations of each call."""
        return self.place.sizes.loop

    async def written(self) -> float:
        """Our writer, from run.started to run.applied."""
        with self.place.branch() as branch:
            return self.count / await self.writer(branch).loop()

    async def applied(self) -> float:
        """Our writer, from the claim to the release: with gate, schema and the plan's way into the ledger."""
        with self.place.branch() as branch:
            return await self.writer(branch).whole()

    async def unrecorded(self) -> float:
        """Our loop without a ledger."""
        with self.place.branch() as branch:
            opening = opener(branch.url, branch=branch.name, token=branch.token, known=self.known)
            binding = DestinationBinding(url=branch.url, branch=branch.name)
            operations = inventory(self.new_name(), self.count)
            return await unrecorded_seconds(opening, binding, operations, run_id=branch.name)

    async def saved(self) -> float:
        """infrahub-sdk as it comes: ``create()`` and ``save(allow_upsert=True)``. The schema is there before."""
        with self.place.branch() as branch:
            config = Config(address=branch.url, api_token=branch.token, default_branch=branch.name, timeout=60)
            client = InfrahubClientSync(config=config)
            client.schema.all(branch=branch.name)
            operations = inventory(self.new_name(), self.count)
            started = time.perf_counter()
            _save_all(client, operations)
            return time.perf_counter() - started

    async def sent(self, recording: Recording) -> float:
        """The mutations of a recorded run, over one connection."""
        with self.place.branch() as branch:
            bodies = recording.bodies(self.new_name())
            started = time.perf_counter()
            await _send_all(branch, bodies)
            return time.perf_counter() - started

    async def record(self) -> Recording:
        """One run of our writer whose requests are kept."""
        transport = KeptRequests()
        with self.place.branch() as branch:
            runs = self.writer(branch, transport=transport)
            await runs.loop()
        return Recording(transport.mutations, self._name(self._names) + "-1")

    def writer(
        self,
        branch: LiveBranch,
        *,
        transport: httpx.AsyncHTTPTransport | None = None,
        connect: StoreConnector | None = None,
    ) -> WriterRuns:
        """Runs of the product's writer on a branch."""
        factory = None if transport is None else lambda: transport
        opening = opener(branch.url, branch=branch.name, token=branch.token, factory=factory, known=self.known)
        return WriterRuns(
            branch.url,
            self.dsns.writer,
            self.ledger,
            self.root,
            self.count,
            prefix=self.new_name(),
            branch=branch.name,
            opening=opening,
            connect=connect,
        )

    def new_name(self) -> str:
        """Before the names of the objects of one call; all of one length."""
        self._names += 1
        return self._name(self._names)

    @staticmethod
    def _name(number: int) -> str:
        return f"bench-{number:04d}"


class KeptRequests(httpx.AsyncHTTPTransport):
    """The product's HTTP layer, with each mutation and the id in its answer kept."""

    def __init__(self) -> None:
        super().__init__(limits=httpx.Limits(max_connections=4, keepalive_expiry=KEEPALIVE_SECONDS), trust_env=False)
        self.mutations: list[Kept] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if b"mutation" not in request.content:
            return response
        body = await response.aread()
        await response.aclose()
        self.mutations.append(Kept(request.url.path, dict(request.headers), request.content, _id_in(response.json())))
        headers = [(name, value) for name, value in response.headers.raw if name.lower() != b"content-encoding"]
        return httpx.Response(response.status_code, headers=headers, content=body, request=request)


@dataclass(frozen=True, slots=True)
class Kept:
    """One mutation as it was sent, and the id of the object that the server named."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    node_id: str


Piece = bytes | int
"""Bytes as they are sent, or the place of an earlier mutation whose object's id is sent here."""


@dataclass(frozen=True)
class Recording:
    """The mutations of one run, and the text by which its objects' names differ from those of others."""

    mutations: Sequence[Kept]
    name: str

    def bodies(self, name: str) -> list[list[Piece]]:
        """Encoded ahead, for new objects: only ids that the server is yet to give are left open."""
        places = {kept.node_id: place for place, kept in enumerate(self.mutations)}
        renamed = f"{name}-1"
        if len(renamed) != len(self.name):
            raise ValueError(f"{renamed} is not as long as {self.name}: the bodies would not be the same")
        return [
            _pieces(kept.body.replace(self.name.encode(), renamed.encode()), places, own=place)
            for place, kept in enumerate(self.mutations)
        ]


def _pieces(body: bytes, places: Mapping[str, int], *, own: int) -> list[Piece]:
    """Cut a body at the ids of peers; an id of ours for the object itself becomes a new one."""
    pieces: list[Piece] = []
    end = 0
    for found in _ID.finditer(body):
        place = places.get(found.group().decode())
        pieces.append(body[end : found.start()])
        if place is None:
            pieces.append(found.group())
        else:
            pieces.append(str(uuid.uuid4()).encode() if place == own else place)
        end = found.end()
    pieces.append(body[end:])
    return _joined(pieces)


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, bytes) and joined and isinstance(joined[-1], bytes):
            joined[-1] += piece
        else:
            joined.append(piece)
    return joined


async def _send_all(branch: LiveBranch, bodies: Sequence[Sequence[Piece]]) -> None:
    """One after the other over one connection; anything but a confirmation ends it."""
    ids: list[bytes] = []
    limits = httpx.Limits(max_connections=1)
    headers = {"X-INFRAHUB-KEY": branch.token, "content-type": "application/json"}
    async with httpx.AsyncClient(
        base_url=branch.url, headers=headers, limits=limits, trust_env=False, timeout=REQUEST_TIMEOUT
    ) as client:
        for pieces in bodies:
            content = b"".join(piece if isinstance(piece, bytes) else ids[piece] for piece in pieces)
            response = await client.post(f"/graphql/{branch.name}", content=content)
            ids.append(_id_in(response.json()).encode())


def _id_in(document: Any) -> str:
    """The id in the answer to a mutation.

    Raises:
        RuntimeError: the server did not confirm it.
    """
    if not document.get("errors"):
        (result,) = document["data"].values()
        if result["ok"] is True:
            return str(result["object"]["id"])
    raise RuntimeError(f"the server refused a write of the bench: {document}")


def _save_all(client: InfrahubClientSync, operations: Sequence[PlannedOperation]) -> None:
    ids: dict[ObjectKey, str] = {}
    for operation in operations:
        data: dict[str, Any] = dict(operation.payload or {})
        for reference in operation.relationships or ():
            (peer,) = reference.peers
            data[reference.field] = ids[key_of(reference.peer_kind, peer)]
        node = client.create(kind=operation.kind, data=data)
        node.save(allow_upsert=True)
        ids[key_of(operation.kind, operation.identity)] = str(node.id)
