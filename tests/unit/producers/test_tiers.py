"""Tiers: after what is referred to; cycles cut where that is allowed, reported where it is not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from producers.tiers import Edge, assign_tiers


def _hard(target: str, field: str = "parent") -> Edge:
    return Edge(target=target, field=field)


def _optional(target: str, field: str = "friend") -> Edge:
    return Edge(target=target, field=field, optional=True)


def _soft(target: str, field: str = "order") -> Edge:
    return Edge(target=target, field=field, hard=False)


def test_a_chain_is_ordered_by_its_longest_path() -> None:
    result = assign_tiers({"c": [_hard("b")], "b": [_hard("a")], "a": [], "d": [_hard("a"), _hard("c")]})
    assert result.tiers == {"a": 0, "b": 1, "c": 2, "d": 3}
    assert (result.cut, result.cycles) == ({}, [])


def test_targets_that_are_no_nodes_are_ignored() -> None:
    assert assign_tiers({"a": [_hard("elsewhere")]}).tiers == {"a": 0}


def test_an_optional_cycle_is_cut_once() -> None:
    result = assign_tiers({"a": [_optional("b")], "b": [_optional("a")]})
    assert result.cut == {"b": {"friend"}}
    assert result.tiers == {"a": 1, "b": 0}


def test_the_optional_edge_is_cut_wherever_the_walk_begins() -> None:
    assert assign_tiers({"a": [_optional("b")], "b": [_hard("a")]}).cut == {"a": {"friend"}}
    assert assign_tiers({"b": [_optional("a")], "a": [_hard("b")]}).cut == {"b": {"friend"}}


def test_a_node_that_refers_to_itself_is_cut_or_reported() -> None:
    assert assign_tiers({"a": [_optional("a")]}).cut == {"a": {"friend"}}
    assert assign_tiers({"a": [_hard("a")]}).cycles == [("a",)]


def test_a_mandatory_cycle_is_reported_and_others_are_still_ordered() -> None:
    result = assign_tiers({"a": [_hard("b")], "b": [_hard("a")], "d": [_hard("c")], "c": []})
    assert result.cycles == [("a", "b")]
    assert (result.tiers["c"], result.tiers["d"]) == (0, 1)


def test_a_mandatory_reference_beside_an_optional_one_keeps_the_cycle() -> None:
    result = assign_tiers({"a": [_optional("b"), _hard("b")], "b": [_hard("a")]})
    assert len(result.cycles) == 1


def test_order_for_its_own_sake_gives_way_before_anything_is_cut() -> None:
    result = assign_tiers({"a": [_soft("b")], "b": [_optional("a")]})
    assert result.cut == {}
    assert result.tiers == {"a": 0, "b": 1}


def test_depth_is_no_recursion() -> None:
    nodes = {str(number): [_hard(str(number + 1))] for number in range(5_000)}
    assert max(assign_tiers(nodes).tiers.values()) == 4_999
    ring = {str(number): [_optional(str((number + 1) % 5_000))] for number in range(5_000)}
    assert sum(len(fields) for fields in assign_tiers(ring).cut.values()) == 1


_NODES = "abcdef"
_EDGES = st.builds(
    Edge,
    target=st.sampled_from(_NODES),
    field=st.sampled_from(["p", "q"]),
    hard=st.booleans(),
    optional=st.booleans(),
)


@given(st.fixed_dictionaries({node: st.lists(_EDGES, max_size=4) for node in _NODES}))
def test_every_hard_reference_that_is_kept_points_to_a_lower_tier(nodes: dict[str, list[Edge]]) -> None:
    result = assign_tiers(nodes)
    assert result.tiers.keys() == nodes.keys()
    on_cycle = {node for cycle in result.cycles for node in cycle}
    for node, edges in nodes.items():
        for edge in edges:
            if edge.hard and edge.field not in result.cut.get(node, ()) and not {node, edge.target} & on_cycle:
                assert result.tiers[node] > result.tiers[edge.target]
    for node, fields in result.cut.items():
        assert all(any(edge.field == name and edge.optional for edge in nodes[node]) for name in fields)


@given(st.fixed_dictionaries({node: st.lists(_EDGES, max_size=4) for node in _NODES}), st.permutations(_NODES))
def test_the_result_does_not_depend_on_the_order_of_input(nodes: dict[str, list[Edge]], order: list[str]) -> None:
    shuffled = {node: list(reversed(nodes[node])) for node in order}
    assert assign_tiers(shuffled) == assign_tiers(nodes)
