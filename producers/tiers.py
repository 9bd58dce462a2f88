"""Tiers: every operation comes after those that it refers to (design 4.4, H23 to H25).

A tier is the length of the longest path over references between operations, so parents of a self-referencing kind
come before their children. Two strengths of edges: a *hard* one leads to a create, without which the write fails; a
soft one is order for its own sake (to an update, or from a recorded delete) and gives way. Cycles of hard edges are
cut at optional references, in an order that depends on the plan's content alone; a cycle without one is reported.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """A reference of one node to another. Only an ``optional`` hard edge may be cut."""

    target: str
    field: str
    hard: bool = True
    optional: bool = False


@dataclass(slots=True)
class Tiers:
    """The tier of each node, the fields cut from nodes, and the cycles that could not be cut."""

    tiers: dict[str, int]
    cut: dict[str, set[str]] = field(default_factory=dict)
    cycles: list[tuple[str, ...]] = field(default_factory=list)


def assign_tiers(nodes: Mapping[str, Sequence[Edge]]) -> Tiers:
    """Order the nodes.

    Args:
        nodes: edges by node; targets that are no nodes are ignored.

    Returns:
        A tier for every node. Nodes on a reported cycle have one too, but it means nothing.
    """
    graph = {node: sorted(edge for edge in nodes[node] if edge.target in nodes) for node in sorted(nodes)}
    result = Tiers(tiers={})
    pending = _knots(graph, graph)
    while pending:
        for knot in pending:
            if not _drop_soft(graph, knot):
                _cut(graph, knot, result)
        # only what was knotted can still be: cutting makes no new cycles
        pending = _knots(graph, [node for knot in pending for node in sorted(knot)])
    result.tiers = _longest_paths(graph)
    return result


def _knots(graph: Mapping[str, list[Edge]], nodes: Collection[str]) -> list[frozenset[str]]:
    """Strongly connected sets that hold a cycle, among these nodes (Tarjan's algorithm with a stack of its own)."""
    within = frozenset(nodes)
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for root in nodes:
        work = [] if root in index else [(root, 0)]
        while work:
            node, position = work.pop()
            if node not in index:
                index[node] = low[node] = len(index)
                stack.append(node)
                on_stack.add(node)
            child = None
            for place in range(position, len(graph[node])):
                target = graph[node][place].target
                if target in within and target not in index:
                    child = target
                    work += [(node, place), (child, 0)]
                    break
                if target in on_stack:
                    low[node] = min(low[node], low[target])
            if child is None and low[node] == index[node]:
                knot = frozenset(stack[stack.index(node) :]) if stack[-1] != node else frozenset((node,))
                del stack[len(stack) - len(knot) :]
                on_stack -= knot
                if len(knot) > 1 or any(edge.target == node for edge in graph[node]):
                    found.append(knot)
    return found


def _drop_soft(graph: dict[str, list[Edge]], knot: frozenset[str]) -> bool:
    """Let the soft edges inside a knot go; whether there were any."""
    dropped = False
    for node in knot:
        kept = [edge for edge in graph[node] if edge.hard or edge.target not in knot]
        dropped = dropped or len(kept) != len(graph[node])
        graph[node] = kept
    return dropped


def _cut(graph: dict[str, list[Edge]], knot: frozenset[str], result: Tiers) -> None:
    """Cut every optional reference that closes a cycle on a walk through the knot; there is at least one change."""
    back_edges = list(_back_edges(graph, knot))
    optional = [(node, edge) for _, node, edge in back_edges if edge.optional]
    if not optional:
        # the walk closes its cycles with mandatory references only: look along one of them for an optional one
        path, node, edge = back_edges[0]
        cycle = path[path.index(edge.target) :]
        following = dict(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
        along = [(item, step) for item in cycle for step in graph[item] if step.target == following[item]]
        optional = sorted((item, step) for item, step in along if step.optional and _only_way(along, item, step))[:1]
        if not optional:
            result.cycles.append(tuple(cycle))
            graph[node] = [step for step in graph[node] if step != edge]
    for node, edge in optional:
        result.cut.setdefault(node, set()).add(edge.field)
        graph[node] = [step for step in graph[node] if step.field != edge.field]


def _only_way(along: Sequence[tuple[str, Edge]], node: str, edge: Edge) -> bool:
    """Whether no mandatory reference runs beside this optional one, so that cutting it opens the cycle."""
    return all(step.optional for other, step in along if other == node and step.target == edge.target)


def _back_edges(graph: Mapping[str, list[Edge]], knot: frozenset[str]) -> Iterable[tuple[list[str], str, Edge]]:
    """Edges that lead back onto the path of a depth-first walk from the knot's first node, each with that path."""
    seen: set[str] = set()
    path: list[str] = []
    on_path: set[str] = set()
    work = [(min(knot), 0)]
    while work:
        node, position = work.pop()
        if node not in seen:
            seen.add(node)
            path.append(node)
            on_path.add(node)
        descended = False
        for place in range(position, len(graph[node])):
            edge = graph[node][place]
            if edge.target not in knot:
                continue
            if edge.target in on_path:
                yield list(path), node, edge
            elif edge.target not in seen:
                work += [(node, place + 1), (edge.target, 0)]
                descended = True
                break
        if not descended:
            path.pop()
            on_path.discard(node)


def _longest_paths(graph: Mapping[str, Sequence[Edge]]) -> dict[str, int]:
    """Longest path to a node without edges, for each node of a graph without cycles."""
    waiting = {node: len(edges) for node, edges in graph.items()}
    referrers: dict[str, list[str]] = {}
    for node, edges in graph.items():
        for edge in edges:
            referrers.setdefault(edge.target, []).append(node)
    tiers = dict.fromkeys(graph, 0)
    ready = [node for node, count in waiting.items() if not count]
    while ready:
        target = ready.pop()
        for node in referrers.get(target, ()):
            tiers[node] = max(tiers[node], tiers[target] + 1)
            waiting[node] -= 1
            if not waiting[node]:
                ready.append(node)
    return tiers
