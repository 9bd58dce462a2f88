"""GraphQL types of branches and of the server itself."""

from __future__ import annotations

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLField,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
)

_STATUSES = ("OPEN", "NEED_REBASE", "NEED_UPGRADE_REBASE", "DELETING", "MERGING", "MERGE_FAILED", "MERGED")
_STATUS = GraphQLEnumType("BranchStatus", {name: name for name in _STATUSES})

_BRANCH = GraphQLObjectType(
    "Branch",
    {
        "id": GraphQLField(GraphQLNonNull(GraphQLString)),
        "name": GraphQLField(GraphQLNonNull(GraphQLString)),
        "description": GraphQLField(GraphQLString),
        "origin_branch": GraphQLField(GraphQLString),
        "branched_from": GraphQLField(GraphQLString),
        "created_at": GraphQLField(GraphQLString),
        "status": GraphQLField(GraphQLNonNull(_STATUS)),
        "is_default": GraphQLField(GraphQLBoolean),
        "sync_with_git": GraphQLField(GraphQLBoolean),
        "has_schema_changes": GraphQLField(GraphQLBoolean),
        "graph_version": GraphQLField(GraphQLInt),
    },
)

_INFO = GraphQLObjectType(
    "InfrahubInfo",
    {
        "deployment_id": GraphQLField(GraphQLNonNull(GraphQLString)),
        "version": GraphQLField(GraphQLNonNull(GraphQLString)),
    },
)


def branch_queries() -> dict[str, GraphQLField]:
    """``Branch`` and ``InfrahubInfo``."""
    arguments = {
        "ids": GraphQLArgument(GraphQLList(GraphQLID)),
        "name": GraphQLArgument(GraphQLString),
    }
    branches = GraphQLList(GraphQLNonNull(_BRANCH))
    return {
        "Branch": GraphQLField(GraphQLNonNull(branches), arguments),
        "InfrahubInfo": GraphQLField(GraphQLNonNull(_INFO)),
    }


def branch_mutations(context: GraphQLInputObjectType) -> dict[str, GraphQLField]:
    """The mutations of branches, with the arguments that clients send."""
    task = GraphQLObjectType("TaskInfo", {"id": GraphQLField(GraphQLString)})
    create_input = GraphQLInputObjectType(
        "BranchCreateInput",
        {
            "id": GraphQLInputField(GraphQLString),
            "name": GraphQLInputField(GraphQLNonNull(GraphQLString)),
            "description": GraphQLInputField(GraphQLString),
            "sync_with_git": GraphQLInputField(GraphQLBoolean),
        },
    )
    name_input = GraphQLInputObjectType(
        "BranchDeleteInput",
        {"name": GraphQLInputField(GraphQLString), "delete_from_git": GraphQLInputField(GraphQLBoolean)},
    )
    created = {"ok": GraphQLField(GraphQLBoolean), "object": GraphQLField(_BRANCH), "task": GraphQLField(task)}
    by_name = GraphQLInputObjectType("BranchNameInput", {"name": GraphQLInputField(GraphQLString)})
    deleted = {"ok": GraphQLField(GraphQLBoolean), "task": GraphQLField(task)}
    return {
        "BranchCreate": GraphQLField(GraphQLObjectType("BranchCreate", created), _arguments(create_input, context)),
        "BranchDelete": GraphQLField(GraphQLObjectType("BranchDelete", deleted), _arguments(name_input, context)),
        **{
            name: GraphQLField(GraphQLObjectType(name, created), _arguments(by_name, context))
            for name in ("BranchMerge", "BranchRebase")
        },
    }


def _arguments(data: GraphQLInputObjectType, context: GraphQLInputObjectType) -> dict[str, GraphQLArgument]:
    return {
        "data": GraphQLArgument(GraphQLNonNull(data)),
        "context": GraphQLArgument(context),
        "background_execution": GraphQLArgument(GraphQLBoolean),
        "wait_until_completion": GraphQLArgument(GraphQLBoolean),
    }
