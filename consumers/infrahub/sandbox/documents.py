"""Parsed and validated documents, kept by their text, with all that does not change from request to request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    parse,
    validate,
)

from consumers.infrahub.sandbox.errors import UNDEFINED
from consumers.infrahub.sandbox.projection import Projector, Reading
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.selection import SelectedField, Selector

_CACHED_DOCUMENTS = 1024
_NO_TYPES = frozenset[str]()

ListAnswer = Callable[[Reading], dict[str, Any]]
ObjectAnswer = Callable[[Node, Reading], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RootField:
    """One field of an operation's root.

    ``payload`` are the fields below it; ``listing`` answers a list query, ``object`` the ``object`` of a mutation.
    """

    selected: SelectedField
    payload: tuple[SelectedField, ...]
    listing: ListAnswer | None
    objects: Mapping[str, ObjectAnswer]


@dataclass(frozen=True, slots=True)
class OperationPlan:
    """One operation, ready to run."""

    operation: OperationDefinitionNode
    roots: tuple[RootField, ...]
    selector: Selector

    @property
    def is_mutation(self) -> bool:
        """Whether running it can write."""
        return self.operation.operation is OperationType.MUTATION


@dataclass(slots=True)
class Document:
    """A text after parsing and validation. With ``@skip`` or ``@include`` in it no plan is kept."""

    ast: DocumentNode
    errors: list[GraphQLError]
    keeps_plans: bool
    plans: dict[str | None, OperationPlan] = field(default_factory=dict)


class RequestRefusedError(Exception):
    """Document or variables are wrong: nothing ran, and the errors have no path.

    ``mutations`` are (response key, name) of the mutations that were asked for.
    """

    def __init__(self, errors: list[GraphQLError], mutations: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.mutations = tuple(mutations)
        self.answer: dict[str, Any] = {"data": None, "errors": [_formatted(error) for error in errors]}


class DocumentCache:
    """Parses and validates each text once, as the server does."""

    def __init__(self, schema: GraphQLSchema, kinds: Mapping[str, Any]) -> None:
        self._schema = schema
        self._kinds = kinds
        self._documents: OrderedDict[str, Document] = OrderedDict()

    def plan(self, text: str, variables: Mapping[str, Any], operation_name: str | None) -> OperationPlan:
        """The plan of one operation of a text.

        Raises:
            GraphQLSyntaxError: the text is no document.
            RequestRefusedError: it does not fit the schema, or has no such operation.
        """
        document = self._document(text)
        if document.errors:
            raise RequestRefusedError(document.errors, _mutations(document.ast))
        plan = document.plans.get(operation_name)
        if plan is None:
            plan = self._make_plan(document.ast, operation_name, variables)
            if document.keeps_plans:
                document.plans[operation_name] = plan
        return plan

    def _document(self, text: str) -> Document:
        document = self._documents.get(text)
        if document is not None:
            self._documents.move_to_end(text)
            return document
        ast = parse(text)
        keeps_plans = "@skip" not in text and "@include" not in text
        document = self._documents[text] = Document(ast, validate(self._schema, ast), keeps_plans)
        if len(self._documents) > _CACHED_DOCUMENTS:
            self._documents.popitem(last=False)
        return document

    def _make_plan(self, ast: DocumentNode, name: str | None, variables: Mapping[str, Any]) -> OperationPlan:
        operation = _operation(ast, name)
        fragments = {item.name.value: item for item in ast.definitions if isinstance(item, FragmentDefinitionNode)}
        selector = Selector(fragments, variables)
        projector = Projector(self._schema, selector)
        types = frozenset(("Mutation" if operation.operation is OperationType.MUTATION else "Query",))
        roots = tuple(
            self._root(item, selector, projector, mutates="Mutation" in types)
            for item in selector.fields((operation.selection_set,), types)
        )
        return OperationPlan(operation, roots, selector)

    def _root(self, item: SelectedField, selector: Selector, projector: Projector, *, mutates: bool) -> RootField:
        payload = tuple(selector.fields(item.below, _NO_TYPES))
        if mutates:
            objects = {field.key: projector.object(field.below) for field in payload if field.name == "object"}
            return RootField(item, payload, None, objects)
        listing = projector.list_query(item, item.name) if item.name in self._kinds else None
        return RootField(item, payload, listing, {})


def _operation(ast: DocumentNode, name: str | None) -> OperationDefinitionNode:
    operations = [item for item in ast.definitions if isinstance(item, OperationDefinitionNode)]
    if name is not None:
        operations = [item for item in operations if item.name is not None and item.name.value == name]
        if not operations:
            raise RequestRefusedError([GraphQLError(f"Unknown operation named '{name}'.")])
    if len(operations) != 1:
        raise RequestRefusedError([GraphQLError("Must provide operation name if query contains multiple operations.")])
    return operations[0]


def _mutations(ast: DocumentNode) -> list[tuple[str, str]]:
    return [
        (field.alias.value if field.alias else field.name.value, field.name.value)
        for item in ast.definitions
        if isinstance(item, OperationDefinitionNode) and item.operation is OperationType.MUTATION
        for field in item.selection_set.selections
        if isinstance(field, FieldNode)
    ]


def _formatted(error: GraphQLError) -> dict[str, Any]:
    formatted: dict[str, Any] = {"message": error.message}
    if error.locations:
        formatted["locations"] = [{"line": item.line, "column": item.column} for item in error.locations]
    formatted["extensions"] = {"code": UNDEFINED, "http_status": 500, "data": {}}
    return formatted
