"""Pages as our reader asks for them, by its own documents: what is on which, and in what order."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from consumers.infrahub.pages import count_text, page_text, peers_page_text
from tests.contract.cases.case import case
from tests.contract.cases.starts import a_site, a_tag
from tests.contract.cases.talk import Reply, Talk, peer, peers, values

_NAMES = ("d", "b", "e", "a", "c")
"""Of five objects in the order of their ids."""
_MADE = (2, 0, 4, 1, 3)
"""In which order they are made: neither that of their ids nor that of their names."""


def _ids(t: Talk, count: int) -> list[str]:
    """Ids of ours in their own order, which the transcript shows by their number."""
    return [
        t.known(new, f"id {number}") for number, new in enumerate(sorted(str(uuid.uuid4()) for _ in range(count)), 1)
    ]


def _leaves(t: Talk, branch: str | None = None) -> list[str]:
    ids = _ids(t, len(_NAMES))
    for position in _MADE:
        t.write("ProbeLeafCreate", {"id": ids[position], **values(name=t.name(_NAMES[position]))}, branch=branch)
    return ids


def _order(t: Talk, call: str, kind: str, reply: Reply) -> None:
    """What was served, in the order in which it was: that of the transcript's edges says nothing."""
    t.note(call, [edge["node"]["id"] for edge in reply.document["data"][kind]["edges"]])


@case("paging")
def objects_by_id(t: Talk) -> None:
    """Pages are in the order of ids; behind the end is nothing, and the count is that of all."""
    branch = t.new_branch("pages")  # where nobody else has any
    _leaves(t, branch)
    text = page_text("ProbeLeaf", ("name",), (), ("tags",))
    for offset, limit in ((0, 2), (1, 2), (2, 2), (3, 5), (0, 5), (4, 2), (5, 2), (9, 2)):
        reply = t.post(text, {"offset": offset, "limit": limit}, branch=branch, call="a page")
        _order(t, f"{limit} behind {offset}", "ProbeLeaf", reply)


@case("paging")
def objects_as_the_kind_orders_them(t: Talk) -> None:
    """Without a word about order the kind's own one is taken."""
    tags = [a_tag(t, name) for name in "ba"]
    for name in ("l2", "l3", "l1"):
        t.write("ProbeLeafUpsert", {**values(name=t.name(name)), "tags": peers(*tags)})
    text = "query L($tags: [ID]) { ProbeLeaf(tags__ids: $tags) { count edges { node { id name { value } } } } }"
    reply = t.post(text, {"tags": tags[:1]}, call="in the order of the kind")
    t.note("names", [edge["node"]["name"]["value"] for edge in reply.document["data"]["ProbeLeaf"]["edges"]])


@case("paging")
def objects_that_change_between_pages(t: Talk) -> None:
    """A change of values moves nothing, a deletion moves all behind it."""
    ids = _leaves(t)
    text = page_text("ProbeLeaf", ("name",), (), ())

    def pages(call: str) -> None:
        t.write("ProbeLeafUpsert", {"id": ids[0], **values(name=t.name(call))})
        for offset in (0, 2):
            _order(t, f"{call}, behind {offset}", "ProbeLeaf", _of(t, ids, text, offset))

    pages("changed")
    t.write("ProbeLeafDelete", {"id": ids[1]})
    pages("one deleted")


def _of(t: Talk, ids: Iterable[str], text: str, offset: int) -> Reply:
    """One page of two, of these objects alone: other cases make leaves as well."""
    text = text.replace("query Page(", "query Page($ids: [ID], ").replace("(offset:", "(ids: $ids, offset:")
    return t.post(text, {"ids": list(ids), "offset": offset, "limit": 2}, call="a page")


@case("paging")
def peers_of_one_object(t: Talk) -> None:
    """A list of peers read on from somewhere, and the whole of it within a page of objects."""
    ids = _ids(t, len(_NAMES))
    for position in _MADE:
        t.write("ProbeTagCreate", {"id": ids[position], **values(name=t.name(_NAMES[position]))})
    site = a_site(t)
    device = t.write(
        "ProbeDeviceUpsert",
        {**values(name=t.name("device")), "site": peer(site), "tags": peers(*(ids[position] for position in _MADE))},
    ).id
    text = peers_page_text("ProbeDevice", "tags")
    for offset, limit in ((0, 2), (1, 2), (2, 2), (3, 5), (0, 5), (5, 2)):
        reply = t.post(text, {"ids": [device], "offset": offset, "limit": limit}, call="peers")
        _order(t, f"{limit} peers behind {offset}", "tags", Reply(reply.status, {"data": reply.node}, ""))
    reply = t.read("ProbeDevice", device, "id tags { count edges { node { id } } }")
    _order(t, "all of them", "tags", Reply(reply.status, {"data": reply.node}, ""))


@case("paging")
def many_peers_within_a_page(t: Talk) -> None:
    """A list of peers within a page of objects is not cut."""
    tags = [a_tag(t, f"tag {number}") for number in range(12)]
    site = t.write("ProbeSiteUpsert", {**values(name=t.name(), asset=t.name()), "tags": peers(*tags)}).id
    node = t.read("ProbeSite", site, "tags { count edges { node { display_label } } }").node
    t.note("peers in the answer", len(node["tags"]["edges"]))


@case("paging")
def counts(t: Talk) -> None:
    """Kinds counted together, by the document that asks for one object of each too."""
    text = count_text(("ProbeSite", "ProbePlace"))
    path, found = f"/graphql/{t.place.branch}", list[dict[str, Any]]()
    for _ in range(2):
        reply = t.send("POST", path, {"query": text}, call="counts", shown=False)
        found.append(reply.document["data"])
        site = a_site(t, f"site {len(found)}")
        t.write("ProbeRackUpsert", {**values(name="r"), "site": peer(site)})
    # how many there are depends on the cases before this one
    t.note("more than before", {kind: found[1][kind]["count"] - found[0][kind]["count"] for kind in found[0]})
    t.note("shown of each", {kind: len(page["edges"]) for kind, page in found[1].items()})
