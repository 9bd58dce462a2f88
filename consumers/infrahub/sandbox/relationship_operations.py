"""``RelationshipAdd`` and ``RelationshipRemove``: single peers added to, or taken from, what is there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
)

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.errors import node_not_found, unprocessable
from consumers.infrahub.sandbox.writes import BranchWriter

RELATIONSHIP_MUTATIONS = ("RelationshipAdd", "RelationshipRemove")


def relationship_mutations(related: GraphQLInputObjectType) -> dict[str, GraphQLField]:
    """The fields of both; ``related`` is the input of one peer."""
    data = GraphQLInputObjectType(
        "RelationshipNodesInput",
        {
            "id": GraphQLInputField(GraphQLNonNull(GraphQLString)),
            "name": GraphQLInputField(GraphQLNonNull(GraphQLString)),
            "nodes": GraphQLInputField(GraphQLList(related)),
        },
    )
    arguments = {"data": GraphQLArgument(GraphQLNonNull(data))}
    return {
        name: GraphQLField(GraphQLObjectType(name, {"ok": GraphQLField(GraphQLBoolean)}), arguments)
        for name in RELATIONSHIP_MUTATIONS
    }


def change_peers(branch: BranchStore, writer: BranchWriter, mutation: str, data: Mapping[str, Any]) -> None:
    """Add or remove peers; what is there already, or is not there, is no error. A single peer is replaced.

    Raises:
        MutationRefusedError, InvalidFieldsError: nothing was written.
    """
    node = branch.nodes.get(data["id"])
    if node is None:
        raise node_not_found("node", data["id"])
    end = node.kind.ends.get(data["name"])
    if end is None:
        raise unprocessable(f"'{data['name']}' is not a valid relationship for '{node.kind.name}'")
    named = [item["id"] for item in data.get("nodes") or ()]
    for peer_id in named:
        if peer_id not in branch.nodes:
            raise unprocessable(f"'{peer_id}': Unable to find the node in the database.")
    there = list(node.peer_ids(end.slot))
    if mutation == "RelationshipRemove":
        after = [peer_id for peer_id in there if peer_id not in named]
    else:
        after = [*there, *named] if end.many else named
    wanted: Any = [{"id": peer_id} for peer_id in after]
    if not end.many:
        wanted = wanted[0] if wanted else None
    writer.update(node, {end.name: wanted})
