"""The GraphQL schema of a sandbox, generated from its schema document.

Type and field names are those of Infrahub 1.11, so that a document that validates here validates there, and the other
way round for what is simulated. Resolvers are not attached: documents are executed by ``execution``.
"""

from __future__ import annotations

from collections.abc import Callable

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLField,
    GraphQLID,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
)

from consumers.infrahub.sandbox.attribute_types import (
    ACCOUNT,
    GENERIC_POOL_INPUT,
    LINEAGE_OWNER,
    LINEAGE_SOURCE,
    attribute_family,
)
from consumers.infrahub.sandbox.branch_types import branch_mutations, branch_queries
from consumers.infrahub.sandbox.model import CORE_NODE, KindModel, RelationshipEnd, SchemaModel
from consumers.infrahub.sandbox.relationship_operations import relationship_mutations
from consumers.infrahub.sandbox.scalars import DATE_TIME, GENERIC_SCALAR
from ledger.schema import Attribute

_ADDRESS_PEERS = {
    "BuiltinIPAddress": "RelatedIPAddressNodeInput",
    "IpamIPAddress": "RelatedIPAddressNodeInput",
    "BuiltinIPPrefix": "RelatedIPPrefixNodeInput",
    "IpamIPPrefix": "RelatedIPPrefixNodeInput",
}

_OWN_TYPES = {made.name: made for made in (ACCOUNT, LINEAGE_OWNER, LINEAGE_SOURCE)}
"""Types that every answer may hold; a relationship of the document may lead to one of them as well."""


def build_schema(model: SchemaModel) -> GraphQLSchema:
    """The GraphQL schema with queries for every kind and generic, and mutations for every kind."""
    return _SchemaBuilder(model).build()


def _string_list() -> GraphQLArgument:
    return GraphQLArgument(GraphQLList(GraphQLString))


def _attribute_arguments(prefix: str, attribute: Attribute) -> dict[str, GraphQLArgument]:
    scalar = attribute_family(attribute.kind).scalar
    return {
        f"{prefix}__value": GraphQLArgument(scalar),
        f"{prefix}__values": GraphQLArgument(GraphQLList(scalar)),
        f"{prefix}__isnull": GraphQLArgument(GraphQLBoolean),
    }


class _SchemaBuilder:
    def __init__(self, model: SchemaModel) -> None:
        self._model = model
        self._order = GraphQLInputObjectType(
            "OrderInput",
            {"disable": GraphQLInputField(GraphQLBoolean), "node_metadata": GraphQLInputField(GENERIC_SCALAR)},
        )
        self._delete_input = _input_type("DeleteInput", {"id": GraphQLString, "hfid": GraphQLList(GraphQLString)})
        self._context_input = GraphQLInputObjectType(
            "ContextInput",
            {"account": GraphQLInputField(_input_type("ContextAccountInput", {"id": GraphQLNonNull(GraphQLString)}))},
        )
        self._related = {
            name: _related_input(name, with_kind=name == "RelatedNodeInput")
            for name in ("RelatedNodeInput", "RelatedIPAddressNodeInput", "RelatedIPPrefixNodeInput")
        }
        self._node_metadata = _metadata_type("InfrahubNodeMetadata", created=True)
        self._edge_metadata = _metadata_type("InfrahubRelationshipMetadata", created=False)
        self._properties = GraphQLObjectType(
            "RelationshipProperty",
            {
                "is_protected": GraphQLField(GraphQLBoolean),
                "owner": GraphQLField(LINEAGE_OWNER),
                "source": GraphQLField(LINEAGE_SOURCE),
                "updated_at": GraphQLField(DATE_TIME),
            },
        )
        self._types: dict[str, GraphQLInterfaceType | GraphQLObjectType] = {}
        for name in (CORE_NODE, *model.outside):
            self._types[name] = _OWN_TYPES.get(name) or GraphQLInterfaceType(name, _identity_fields)
        for kind in model.kinds.values():
            self._types[kind.name] = self._kind_type(kind)
        self._edges = {name: self._edge_type("Edged", name, nested=False) for name in self._types}
        self._nested_edges = {name: self._edge_type("NestedEdged", name, nested=True) for name in self._types}
        self._pages = {name: self._page_type("Paginated", name, self._edges[name]) for name in self._types}
        self._nested_pages = {
            name: self._page_type("NestedPaginated", name, self._nested_edges[name]) for name in self._types
        }

    def build(self) -> GraphQLSchema:
        queries = {
            name: GraphQLField(GraphQLNonNull(page), self._list_arguments(name)) for name, page in self._pages.items()
        }
        mutations: dict[str, GraphQLField] = {}
        for kind in self._model.nodes():
            mutations.update(self._kind_mutations(kind))
        return GraphQLSchema(
            query=GraphQLObjectType("Query", {**queries, **branch_queries()}),
            mutation=GraphQLObjectType(
                "Mutation",
                {
                    **mutations,
                    **branch_mutations(self._context_input),
                    **relationship_mutations(self._related["RelatedNodeInput"]),
                },
            ),
            types=list[GraphQLNamedType](self._types.values()),
            # Kinds narrow some relationships that they inherit, as on the server, which does not check that either.
            assume_valid=True,
        )

    def _kind_type(self, kind: KindModel) -> GraphQLInterfaceType | GraphQLObjectType:
        if not kind.is_node:
            return GraphQLInterfaceType(kind.name, self._kind_fields(kind))
        interfaces = [self._types_later(name) for name in kind.interfaces]
        return GraphQLObjectType(
            kind.name, self._kind_fields(kind), interfaces=lambda: [interface() for interface in interfaces]
        )

    def _types_later(self, name: str) -> Callable[[], GraphQLInterfaceType]:
        def interface() -> GraphQLInterfaceType:
            found = self._types[name]
            if not isinstance(found, GraphQLInterfaceType):
                raise TypeError(f"{name} is inherited from but is no generic")
            return found

        return interface

    def _kind_fields(self, kind: KindModel) -> Callable[[], dict[str, GraphQLField]]:
        def fields() -> dict[str, GraphQLField]:
            made = _identity_fields()
            for attribute in kind.attributes.values():
                made[attribute.name] = GraphQLField(attribute_family(attribute.kind).output)
            for end in kind.ends.values():
                made[end.name] = self._relationship_field(end)
            return made

        return fields

    def _relationship_field(self, end: RelationshipEnd) -> GraphQLField:
        if not end.many:
            return GraphQLField(GraphQLNonNull(self._nested_edges[end.target]))
        arguments = _page_arguments(self._order)
        arguments["isnull"] = GraphQLArgument(GraphQLBoolean)
        peer = self._model.kinds.get(end.peer)
        for attribute in peer.attributes.values() if peer is not None else ():
            arguments.update(_attribute_arguments(attribute.name, attribute))
        return GraphQLField(GraphQLNonNull(self._nested_pages[end.target]), arguments)

    def _edge_type(self, prefix: str, name: str, *, nested: bool) -> GraphQLObjectType:
        fields = {
            "node": GraphQLField(self._types[name]),
            "node_metadata": GraphQLField(self._node_metadata),
        }
        if nested:
            fields["properties"] = GraphQLField(self._properties)
            fields["relationship_metadata"] = GraphQLField(self._edge_metadata)
        return GraphQLObjectType(f"{prefix}{name}", fields)

    def _page_type(self, prefix: str, name: str, edge: GraphQLObjectType) -> GraphQLObjectType:
        edges = GraphQLNonNull(GraphQLList(GraphQLNonNull(edge)))
        return GraphQLObjectType(
            f"{prefix}{name}", {"count": GraphQLField(GraphQLNonNull(GraphQLInt)), "edges": GraphQLField(edges)}
        )

    def _list_arguments(self, name: str) -> dict[str, GraphQLArgument]:
        arguments = _page_arguments(self._order)
        arguments["partial_match"] = GraphQLArgument(GraphQLBoolean)
        kind = self._model.kinds.get(name)
        if kind is None:
            return arguments
        arguments["hfid"] = _string_list()
        for attribute in kind.attributes.values():
            arguments.update(_attribute_arguments(attribute.name, attribute))
        for end in kind.ends.values():
            arguments[f"{end.name}__ids"] = GraphQLArgument(GraphQLList(GraphQLID))
            arguments[f"{end.name}__isnull"] = GraphQLArgument(GraphQLBoolean)
            peer = self._model.kinds.get(end.peer)
            for attribute in peer.attributes.values() if peer is not None else ():
                arguments.update(_attribute_arguments(f"{end.name}__{attribute.name}", attribute))
        return arguments

    def _kind_mutations(self, kind: KindModel) -> dict[str, GraphQLField]:
        made = {}
        for action in ("Create", "Update", "Upsert"):
            fields = {"ok": GraphQLField(GraphQLBoolean), "object": GraphQLField(self._types[kind.name])}
            payload = GraphQLObjectType(f"{kind.name}{action}", fields)
            data = self._write_input(kind, action)
            made[payload.name] = GraphQLField(payload, self._mutation_arguments(data))
        deleted = GraphQLObjectType(f"{kind.name}Delete", {"ok": GraphQLField(GraphQLBoolean)})
        made[deleted.name] = GraphQLField(deleted, self._mutation_arguments(self._delete_input))
        return made

    def _mutation_arguments(self, data: GraphQLInputObjectType) -> dict[str, GraphQLArgument]:
        return {"data": GraphQLArgument(GraphQLNonNull(data)), "context": GraphQLArgument(self._context_input)}

    def _write_input(self, kind: KindModel, action: str) -> GraphQLInputObjectType:
        """Read-only fields are not in here, and nothing is mandatory: the resolver says what is missing."""
        fields = {"id": GraphQLInputField(GraphQLString)}
        if action != "Create":
            fields["hfid"] = GraphQLInputField(GraphQLList(GraphQLString))
        for attribute in kind.attributes.values():
            if not attribute.read_only:
                family = attribute_family(attribute.kind)
                fields[attribute.name] = GraphQLInputField(family.create if action == "Create" else family.update)
        for end in kind.ends.values():
            if not end.read_only:
                related = self._related[_ADDRESS_PEERS.get(end.peer, "RelatedNodeInput")]
                fields[end.name] = GraphQLInputField(GraphQLList(related) if end.many else related)
        return GraphQLInputObjectType(f"{kind.name}{action}Input", fields)


def _identity_fields() -> dict[str, GraphQLField]:
    return {
        "id": GraphQLField(GraphQLNonNull(GraphQLString)),
        "hfid": GraphQLField(GraphQLList(GraphQLNonNull(GraphQLString))),
        "display_label": GraphQLField(GraphQLString),
    }


def _page_arguments(order: GraphQLInputObjectType) -> dict[str, GraphQLArgument]:
    return {
        "ids": GraphQLArgument(GraphQLList(GraphQLID)),
        "offset": GraphQLArgument(GraphQLInt),
        "limit": GraphQLArgument(GraphQLInt),
        "order": GraphQLArgument(order),
    }


def _input_type(name: str, fields: dict[str, object]) -> GraphQLInputObjectType:
    made = {key: GraphQLInputField(value) for key, value in fields.items()}  # type: ignore[arg-type]
    return GraphQLInputObjectType(name, made)


def _related_input(name: str, *, with_kind: bool) -> GraphQLInputObjectType:
    fields: dict[str, object] = {
        "id": GraphQLString,
        "hfid": GraphQLList(GraphQLString),
        "from_pool": GENERIC_POOL_INPUT,
        "_relation__is_protected": GraphQLBoolean,
        "_relation__owner": GraphQLString,
        "_relation__source": GraphQLString,
    }
    if with_kind:
        fields["kind"] = GraphQLString
    return _input_type(name, fields)


def _metadata_type(name: str, *, created: bool) -> GraphQLObjectType:
    fields = {"updated_at": GraphQLField(DATE_TIME), "updated_by": GraphQLField(ACCOUNT)}
    if created:
        fields |= {"created_at": GraphQLField(DATE_TIME), "created_by": GraphQLField(ACCOUNT)}
    return GraphQLObjectType(name, fields)
