"""Look-ups of peers against hostile answers: never a wrong peer, and nothing but the named refusals."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.destination import OutcomeUnknownError, ProvenUnwrittenError
from tests.hostile.answers.documents import broken, changed, written
from tests.hostile.answers.generate import an_answer, on_the_wire, whole
from tests.hostile.answers.judged import Judged, leak_in
from tests.hostile.answers.leaks import echoes, leaks
from tests.hostile.answers.oracle import Form
from tests.hostile.answers.served import HostileLayer, Served
from tests.hostile.answers.strictly import read_strictly

_OPERATION = "op_0000000000000001"
_SITE = ("LabSite", {"name": "dc1"}, {"name": {"value": "dc1"}})
_TAG = ("BuiltinTag", {"name": "0"}, {"name": {"value": "0"}})
_RACK = (
    "LabRack",
    {"name": "r1", "site": {"peer_kind": "LabSite", "identity": {"name": "dc1"}}},
    {"site": {"node": {"name": {"value": "dc1"}}}, "name": {"value": "r1"}},
)
_VLAN = ("LabVlan", {"vid": 1}, {"vid": {"value": 1}})
PEERS: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (_SITE, _TAG, _RACK, _VLAN)
"""Kind, identity, and how an object of it shows the values that were asked for."""


class Lookups:
    """A resolver whose destination answers whatever it is told to."""

    def __init__(self, surface: InfrahubWriteSurface, layer: HostileLayer, token: str) -> None:
        self._surface = surface
        self._layer = layer
        self._token = token

    async def drawn(self, random: Random) -> Judged:
        """One case from nothing but ``random``."""
        kind, identity, values = random.choice(PEERS)
        return await self.judged(kind, identity, values, self._answer(random, kind, values))

    async def judged(self, kind: str, identity: Mapping[str, Any], values: Any, answer: Served) -> Judged:
        """One look-up."""
        self._layer.answer = lambda _request: answer
        right = self._peer(kind, values, answer)
        try:
            found: str | None = await self._surface.new_peer_resolver().resolve(
                peer_kind=kind, identity=identity, referring_operation_id=_OPERATION
            )
            said, wrong = "peer bound", ""
        except (ProvenUnwrittenError, OutcomeUnknownError) as error:
            found, said, wrong = None, f"peer refused, {type(error).__name__}", leak_in(error, self._token)
            if isinstance(error, OutcomeUnknownError) and error.sent:
                wrong = wrong or "a look-up is called a write"
        except Exception as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            found, said, wrong = None, "defect", f"{type(error).__name__}: {error}"
        if found != right:
            wrong = f"bound {found}, may be bound: {right}; {wrong}"
        return Judged(f"look-up, {answer.name}", said, answer.size, wrong)

    def _peer(self, kind: str, values: Any, answer: Served) -> str | None:
        """The one object whose every shown value is the one asked for; anything beside it makes it none (FF20)."""
        document: Any = read_strictly(answer.truth) if answer.truth is not None and answer.status == 200 else None
        match document:
            case {"data": dict() as data, **rest} if "errors" not in rest and isinstance(data.get(kind), dict):
                edges = data[kind].get("edges")
            case _:
                return None
        if not isinstance(edges, list) or echoes(answer.truth or b"", self._token):
            return None
        nodes = [edge.get("node") if isinstance(edge, dict) else None for edge in edges]
        ids = {node["id"] if isinstance(node, dict) and _is_id(node.get("id")) else None for node in nodes}
        return ids.pop() if len(ids) == 1 and all(_shows(node, values) for node in nodes) else None

    def _answer(self, random: Random, kind: str, values: Any) -> Served:
        if random.random() < 0.2:
            return an_answer(random, Form(kind, "create", None), self._token)
        nodes = [
            {"node": {"id": f"node-{n}", **copy.deepcopy(values)}}
            for n in random.choice([[1], [1], [1], [], [1, 2], [1, 1]])
        ]
        text = written(random, _changed(random, {"data": {kind: {"edges": nodes}}}, self._token))
        if random.random() < 0.2 and not leaks(text.decode("utf-8", "replace"), self._token):
            text = broken(random, text)
        return on_the_wire(random, whole(f"{len(nodes)} found", text))


def _changed(random: Random, document: Any, token: str) -> Any:
    for _ in range(random.choice([0, 1, 1, 2])):
        document = changed(random, document, token)
    return document


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 128 and all("!" <= letter <= "~" for letter in value)


def _shows(node: Any, values: Any) -> bool:
    """Whether a node shows the values; types count, and what else it shows does not."""
    if isinstance(values, dict):
        return isinstance(node, dict) and all(_shows(node.get(name), value) for name, value in values.items())
    return type(node) is type(values) and bool(node == values)
