"""Whether the destination holds what the ledger says was applied: a fold of applied operations over what was there.

An operation that ended in doubt may have written or not, so its values are allowed beside those before it, until a
later success on the same field. So are those of a stray request (see the checker).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.faults.facts import Facts, Node, Request, Row

Fields = dict[tuple[str, str], list[Any]]
"""What may stand in a field: by node id and name; peers as a sorted list of ids."""


def end_state_violations(facts: Facts, strays: Sequence[Request]) -> Iterator[str]:
    """Everything in which the destination is not what the ledger says."""
    allowed = _fold(facts)
    for request in strays:
        for name, value in _fields(request).items():
            allowed.setdefault((request.node_id or "", name), []).append(value)
    for (node_id, name), values in allowed.items():
        node = facts.after.get(node_id)
        if node is not None and (found := _value(node, name)) not in values:
            yield f"{node.kind} {node_id}: {name} is {found!r}, applied was {values!r}"
    yield from _unexplained(facts, strays)
    yield from _doubled(facts)
    yield from _wrong_peers(facts)


def _fold(facts: Facts) -> Fields:
    allowed: Fields = {}
    written: dict[tuple[str, int], Request] = {r.place: r for r in facts.requests if r.written}
    for event in facts.outcomes():
        request = written.get((event["run_id"], event["ordinal"]))
        if request is None or event["kind"] not in ("operation.applied", "operation.unknown"):
            continue
        node_id = str(facts.body(event)["node_id"] if event["kind"] == "operation.applied" else request.node_id)
        for name, value in _fields(request).items():
            if event["kind"] == "operation.applied":
                allowed[node_id, name] = [value]
            else:
                node = facts.before.get(node_id)
                allowed.setdefault((node_id, name), [None if node is None else _value(node, name)]).append(value)
    return allowed


def _fields(request: Request) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, sent in request.sent.items():
        if isinstance(sent, list):
            fields[name] = sorted(peer["id"] for peer in sent)
        elif name != "id":
            fields[name] = sent["value"] if "value" in sent else [sent["id"]]
    return fields


def _value(node: Node, name: str) -> Any:
    return sorted(node.peers[name]) if name in node.peers else node.values.get(name)


def _unexplained(facts: Facts, strays: Sequence[Request]) -> Iterator[str]:
    """Objects that are new and that no operation made, or that were there and are gone."""
    applied = {facts.body(e)["node_id"] for e in facts.outcomes() if e["kind"] == "operation.applied"}
    doubtful = {r.node_id for r in facts.requests if r.written and _in_doubt(facts, r)}
    for node_id in set(facts.after) - set(facts.before) - applied - doubtful - {r.node_id for r in strays}:
        yield f"{facts.after[node_id].kind} {node_id} is there, and nothing recorded made it"
    for node_id in set(facts.before) - set(facts.after):
        yield f"{facts.before[node_id].kind} {node_id} is gone"


def _in_doubt(facts: Facts, request: Request) -> bool:
    kinds = [e["kind"] for e in facts.outcomes() if (e["run_id"], e["ordinal"]) == request.place]
    return "operation.unknown" in kinds and "operation.applied" not in kinds


def _doubled(facts: Facts) -> Iterator[str]:
    """An object that is there twice although its identity names one."""
    seen: set[str] = set()
    for event in facts.outcomes():
        line = facts.operation((event["run_id"], event["ordinal"]))
        name = f"{line['kind']} {json.dumps(line['identity'], sort_keys=True)}"
        if event["kind"] != "operation.applied" or name in seen:
            continue
        seen.add(name)
        found = [i for i, node in facts.after.items() if _is(facts.after, node, line["kind"], line["identity"])]
        if len(found) != 1 or found != [facts.body(event)["node_id"]]:
            yield f"{name} is there as {found}, applied to {facts.body(event)['node_id']}"


def _wrong_peers(facts: Facts) -> Iterator[str]:
    """A peer that was sent and is not the one that the plan names."""
    for request in facts.requests:
        line = facts.operation(request.place)
        for reference in line.get("relationships", ()):
            sent = request.sent.get(reference["field"]) or []
            ids = [peer["id"] for peer in (sent if isinstance(sent, list) else [sent])]
            if not all(
                any(i in facts.after and _is(facts.after, facts.after[i], reference["peer_kind"], peer) for i in ids)
                for peer in reference["peers"]
            ):
                yield f"{request.place}: {reference['field']} was sent as {ids}, planned {reference['peers']}"


def _is(nodes: Mapping[str, Node], node: Node, kind: str, identity: Row) -> bool:
    """Whether a node is the one of that kind and identity; a key part may be a peer with an identity of its own."""
    if node.kind != kind:
        return False
    for name, part in identity.items():
        if isinstance(part, Mapping):
            peers = [nodes[i] for i in node.peers.get(name, ()) if i in nodes]
            if not any(_is(nodes, peer, part["peer_kind"], part["identity"]) for peer in peers):
                return False
        elif node.values.get(name) != part:
            return False
    return True
