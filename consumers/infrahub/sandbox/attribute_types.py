"""GraphQL types of attributes: what a query can ask of one, and what a mutation can say about one."""

from __future__ import annotations

from dataclasses import dataclass

from graphql import (
    GraphQLBoolean,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLString,
)

from consumers.infrahub.sandbox.scalars import BIG_INT, DATE_TIME, GENERIC_SCALAR


@dataclass(frozen=True, slots=True)
class AttributeFamily:
    """The GraphQL side of one or more attribute kinds."""

    scalar: GraphQLScalarType
    output: GraphQLObjectType
    create: GraphQLInputObjectType
    update: GraphQLInputObjectType


def _interface(name: str) -> GraphQLInterfaceType:
    """An interface of the server's own model: there are no accounts here, so nothing implements it."""
    fields = {
        "id": GraphQLField(GraphQLString),
        "hfid": GraphQLField(GraphQLList(GraphQLNonNull(GraphQLString))),
        "display_label": GraphQLField(GraphQLString),
    }
    return GraphQLInterfaceType(name, fields)


LINEAGE_OWNER = _interface("LineageOwner")
LINEAGE_SOURCE = _interface("LineageSource")
ACCOUNT = _interface("CoreGenericAccount")

GENERIC_POOL_INPUT = GraphQLInputObjectType(
    "GenericPoolInput",
    {
        "id": GraphQLInputField(GraphQLNonNull(GraphQLString)),
        "identifier": GraphQLInputField(GraphQLString),
        "data": GraphQLInputField(GENERIC_SCALAR),
    },
)

_EXTRA_TEXTS = {
    "Dropdown": ("label", "color", "description"),
    "IPHost": ("ip", "hostmask", "netmask", "with_hostmask", "with_netmask"),
    "IPNetwork": ("broadcast_address", "hostmask", "netmask", "with_hostmask", "with_netmask"),
    "MacAddress": ("oui", "ei", "bare"),
}
_EXTRA_NUMBERS = {"IPHost": ("prefixlen", "version"), "IPNetwork": ("prefixlen", "version", "num_addresses")}


def _output(name: str, scalar: GraphQLScalarType) -> GraphQLObjectType:
    fields = {
        "id": GraphQLField(GraphQLString),
        "value": GraphQLField(scalar),
        "is_default": GraphQLField(GraphQLBoolean),
        "is_from_profile": GraphQLField(GraphQLBoolean),
        "is_protected": GraphQLField(GraphQLBoolean),
        "updated_at": GraphQLField(DATE_TIME),
        "updated_by": GraphQLField(ACCOUNT),
        "owner": GraphQLField(LINEAGE_OWNER),
        "source": GraphQLField(LINEAGE_SOURCE),
    }
    fields.update({extra: GraphQLField(GraphQLString) for extra in _EXTRA_TEXTS.get(name, ())})
    fields.update({extra: GraphQLField(BIG_INT) for extra in _EXTRA_NUMBERS.get(name, ())})
    return GraphQLObjectType(name, fields)


def _input(name: str, scalar: GraphQLScalarType, *, updates: bool) -> GraphQLInputObjectType:
    fields = {
        "value": GraphQLInputField(scalar),
        "is_protected": GraphQLInputField(GraphQLBoolean),
        "owner": GraphQLInputField(GraphQLString),
        "source": GraphQLInputField(GraphQLString),
    }
    if updates:
        fields["is_default"] = GraphQLInputField(GraphQLBoolean)
    if name.startswith("Number"):
        fields["from_pool"] = GraphQLInputField(GENERIC_POOL_INPUT)
    return GraphQLInputObjectType(name, fields)


def _family(stem: str, scalar: GraphQLScalarType, output: GraphQLObjectType | None = None) -> AttributeFamily:
    return AttributeFamily(
        scalar=scalar,
        output=output or _output(f"{stem}Attribute", scalar),
        create=_input(f"{stem}AttributeCreate", scalar, updates=False),
        update=_input(f"{stem}AttributeUpdate", scalar, updates=True),
    )


_TEXT = _family("Text", GraphQLString)
_NUMBER = _family("Number", BIG_INT)
_CHECKBOX = _family("Checkbox", GraphQLBoolean)


def _text_family(name: str) -> AttributeFamily:
    """Kinds with an answer type of their own that are written as plain text."""
    return AttributeFamily(GraphQLString, _output(name, GraphQLString), _TEXT.create, _TEXT.update)


_FAMILIES = {
    "Number": _NUMBER,
    "NumberPool": _NUMBER,
    "Bandwidth": _NUMBER,
    "Boolean": _CHECKBOX,
    "Checkbox": _CHECKBOX,
    "List": _family("List", GENERIC_SCALAR),
    "JSON": _family("JSON", GENERIC_SCALAR),
    "Any": _family("Any", GENERIC_SCALAR),
    "Dropdown": _text_family("Dropdown"),
    "IPHost": _text_family("IPHost"),
    "IPNetwork": _text_family("IPNetwork"),
    "MacAddress": _text_family("MacAddress"),
}


def attribute_family(kind: str) -> AttributeFamily:
    """The GraphQL types of an attribute kind; everything without types of its own is text."""
    return _FAMILIES.get(kind, _TEXT)
