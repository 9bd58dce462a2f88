"""Reading a kind page by page from a hostile destination: every object once, as it was served, or a named refusal."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import httpx

from consumers.infrahub.connection import InfrahubReader
from ledger.destination import FieldSelection, ObservedObject
from ledger.errors import ApplyLedgerError
from tests.hostile.answers.documents import broken, changed, written
from tests.hostile.answers.generate import an_answer, on_the_wire, whole
from tests.hostile.answers.judged import Judged, leak_in
from tests.hostile.answers.leaks import leaks
from tests.hostile.answers.oracle import Form
from tests.hostile.answers.served import HostileLayer, Served
from tests.hostile.answers.strictly import read_strictly

_KIND = "LabDevice"
_FIELDS = FieldSelection(attributes=("name", "extra"), one=("site",), many=("tags",))
_PAGE = 3
_MOST_REQUESTS = 60


class Pages:
    """A reader whose destination has some objects and serves them with something wrong."""

    def __init__(self, reader: InfrahubReader, layer: HostileLayer, token: str) -> None:
        self._reader = reader
        self._layer = layer
        self._token = token

    async def drawn(self, random: Random) -> Judged:
        """One case from nothing but ``random``."""
        destination = _Destination(random, self._token)
        self._layer.answer = destination.answer
        read: list[ObservedObject] = []
        try:
            async for observed in self._reader.read(_KIND, _FIELDS):
                read.append(observed)
            said, wrong = "pages read", _faults(read, destination)
        except ApplyLedgerError as error:
            said, wrong = f"pages refused, {type(error).__name__}", leak_in(error, self._token)
            if not destination.spoilt:
                wrong = wrong or f"right pages are refused: {error}"
        except Exception as error:  # noqa: BLE001 - whatever else comes out is what is looked for
            said, wrong = "defect", f"{type(error).__name__}: {error}"
        return Judged(f"pages, {destination.name}", said, destination.size, wrong)


class _Destination:
    """Some devices; one request or every one is answered wrongly, or objects come and go between pages."""

    def __init__(self, random: Random, token: str) -> None:
        self.name = "right"
        self.spoilt = False
        self.size = 0
        self.served: list[Served] = []
        self._random = random
        self._token = token
        self._ids = [f"id-{number:03d}" for number in range(random.choice([0, 1, 2, 3, 4, 5, 7, 9]))]
        self._tags = {node_id: [f"tag-{n}" for n in range(random.choice([0, 1, 3, 5]))] for node_id in self._ids}
        self._wrong_at = random.choice([None, 0, 0, 1, 1, 2, 3])
        self._moves_at = random.choice([None, None, None, 1, 2])

    def answer(self, request: httpx.Request) -> Served:
        if len(self.served) > _MOST_REQUESTS:
            raise AssertionError("the reader goes on without an end")
        body = json.loads(request.content)
        number = len(self.served)
        if number == self._moves_at:
            self._move()
        served = self._right(body["query"], body["variables"])
        if number == self._wrong_at:
            served = self._wrong(served)
        self.served.append(served)
        self.size += served.size
        return served

    def _right(self, query: str, variables: dict[str, Any]) -> Served:
        start, stop = variables["offset"], variables["offset"] + variables["limit"]
        if query.startswith("query Peers"):
            (node_id,) = variables["ids"]
            tags = self._tags.get(node_id)
            nodes = [] if tags is None else [{"node": {"id": node_id, "tags": _tags(tags, start, stop)}}]
            document: Any = {"data": {_KIND: {"edges": nodes}}}
        else:
            edges = [{"node": self._node(node_id)} for node_id in self._ids[start:stop]]
            document = {"data": {_KIND: {"count": len(self._ids), "edges": edges}}}
        return whole("right", json.dumps(document).encode())

    def _node(self, node_id: str) -> dict[str, Any]:
        return {
            "id": node_id,
            "__typename": _KIND,
            "name": {"value": f"name of {node_id}"},
            "extra": {"value": {"a": [1, None, "x"]}},
            "site": {"node": None if node_id.endswith("2") else {"id": "site-1", "__typename": "LabSite"}},
            "tags": _tags(self._tags[node_id], 0, 3),  # a server that cuts long lists
        }

    def _wrong(self, right: Served) -> Served:
        random, self.spoilt, self.name = self._random, True, "one answer wrong"
        if random.random() < 0.2:
            return an_answer(random, Form(_KIND, "create", None), self._token)
        document = copy.deepcopy(json.loads(right.truth or b"null"))
        for _ in range(random.choice([1, 1, 2, 3])):
            document = changed(random, document, self._token)
        text = written(random, document)
        if random.random() < 0.2 and not leaks(text.decode("utf-8", "replace"), self._token):
            text = broken(random, text)
        return on_the_wire(random, whole("page, changed", text))

    def _move(self) -> None:
        self.spoilt, self.name = True, "objects come and go"
        if self._ids and self._random.random() < 0.5:
            gone = self._random.choice(self._ids)
            self._ids.remove(gone)
        else:
            new = self._random.choice(["id-000a", "id-999"])
            self._ids = sorted({*self._ids, new})
            self._tags.setdefault(new, [])


def _tags(tags: list[str], start: int, stop: int) -> dict[str, Any]:
    edges = [{"node": {"id": tag, "__typename": "BuiltinTag"}} for tag in tags[start:stop]]
    return {"count": len(tags), "edges": edges}


def _faults(read: list[ObservedObject], destination: _Destination) -> str:
    """What is wrong with objects that were read: each once, as many as *every* page says, each as it was served."""
    pages = [page for served in destination.served if (page := _page(served)) is not None]
    ids = [observed.id for observed in read]
    shown = [edge["node"] for page in pages for edge in page["edges"]]
    if len(set(ids)) != len(ids):
        return f"an object twice: {ids}"
    if any(page["count"] != len(ids) for page in pages if "count" in page):
        return f"{len(ids)} objects, the pages say otherwise"
    for observed in read:
        if not any(_is_shown(observed, node) for node in shown):
            return f"{observed.id} was not served like this"
    return ""


def _is_shown(observed: ObservedObject, node: Any) -> bool:
    return (
        (observed.id, observed.kind) == (node["id"], node["__typename"])
        and dict(observed.attributes) == {name: node[name]["value"] for name in observed.attributes}
        and len({peer.id for peer in observed.many["tags"]}) == node["tags"]["count"]
    )


def _page(served: Served) -> Any:
    """A page of objects as the reader may use it; peers of one object are no page."""
    document: Any = read_strictly(served.truth) if served.truth is not None and served.status == 200 else None
    match document:
        case {"data": {"LabDevice": {"count": int(), "edges": list()} as page}, **rest} if "errors" not in rest:
            return page
    return None
