"""Documents in, answers out: parse and validate by graphql-core, execution by our own projection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLObjectType, GraphQLSchema
from graphql.execution.values import get_argument_values, get_variable_values

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.branch_operations import answer_branches, run_branch_mutation
from consumers.infrahub.sandbox.documents import DocumentCache, OperationPlan, RequestRefusedError, RootField
from consumers.infrahub.sandbox.errors import InvalidFieldsError, MutationRefusedError
from consumers.infrahub.sandbox.graphql_schema import build_schema
from consumers.infrahub.sandbox.model import CORE_NODE
from consumers.infrahub.sandbox.overlap import Glimpse, glimpse_of
from consumers.infrahub.sandbox.projection import Reading
from consumers.infrahub.sandbox.reading_rights import kinds_looked_into
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.relationship_operations import RELATIONSHIP_MUTATIONS, change_peers
from consumers.infrahub.sandbox.selection import SelectedField
from consumers.infrahub.sandbox.store import MERGED, SandboxStore
from consumers.infrahub.sandbox.writes import BranchWriter

_ACTIONS = ("Create", "Update", "Upsert", "Delete")
_MAX_VARIABLE_ERRORS = 50

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MutationField:
    """One mutation of a request. ``kind`` and ``action`` are None for the mutations of branches."""

    key: str
    name: str
    kind: str | None
    action: str | None
    data: Mapping[str, Any]
    root: RootField


Written = Callable[[MutationField, Node | None], None]


@dataclass(slots=True)
class PreparedRequest:
    """A request whose document and variables are good; ``mutations`` is empty for a query."""

    plan: OperationPlan
    branch: BranchStore
    variables: dict[str, Any]
    mutations: tuple[MutationField, ...]
    may_write: bool = True
    """Whether the credential that came with it is that of a writer."""


class Engine:
    """Runs GraphQL requests against a store."""

    def __init__(self, store: SandboxStore, version: str) -> None:
        self.store = store
        self.schema: GraphQLSchema = build_schema(store.model)
        self._version = version
        kinds = {name: name for name in (CORE_NODE, *store.model.outside, *store.model.kinds)}
        self._documents = DocumentCache(self.schema, kinds)

    def prepare(
        self, branch: BranchStore, text: str, variables: Mapping[str, Any], operation_name: str | None
    ) -> PreparedRequest:
        """Parse, validate, choose the operation, coerce the variables.

        Raises:
            GraphQLSyntaxError: the text is no document.
            RequestRefusedError: it does not fit the schema, or the variables do not fit it.
        """
        plan = self._documents.plan(text, variables, operation_name)
        definitions = plan.operation.variable_definitions or ()
        coerced = get_variable_values(self.schema, definitions, dict(variables), max_errors=_MAX_VARIABLE_ERRORS)
        if isinstance(coerced, list):
            asked = [(root.selected.key, root.selected.name) for root in plan.roots] if plan.is_mutation else []
            raise RequestRefusedError(coerced, asked)
        mutations = tuple(self._mutation(root, coerced) for root in plan.roots) if plan.is_mutation else ()
        return PreparedRequest(plan, branch, coerced, mutations)

    def kind_and_action(self, mutation: str) -> tuple[str | None, str | None]:
        """The parts of a mutation's name; both None for one that is about no kind of the schema."""
        action = next((action for action in _ACTIONS if mutation.endswith(action)), "")
        kind = mutation.removesuffix(action)
        return (kind, action) if action and kind in self.store.model.kinds else (None, None)

    def looked_into(self, request: PreparedRequest) -> list[str]:
        """The kinds whose objects a query needs the right to view."""
        return kinds_looked_into(request.plan, self.store.model)

    def permission(self, kind: str, right: str, *, on: str = "other") -> str:
        """What a write of a kind needs on another branch than the default one, as the server names it."""
        document = self.store.model.document
        raw = next(raw for part in ("nodes", "generics") for raw in document[part] if raw["kind"] == kind)
        return f"object:{raw['namespace']}:{raw['name']}:{right}:allow_{on}"

    def run_query(self, request: PreparedRequest) -> Answer:
        """The answer of a query; one object that cannot be read leaves nothing of it."""
        reading = Reading(request.branch, request.variables)
        data: dict[str, Any] = {}
        with self.store.lock:
            for root in request.plan.roots:
                try:
                    data[root.selected.key] = self._answer_root(request.plan, root, reading)
                except MutationRefusedError as exc:
                    error = {"message": exc.message, "path": [root.selected.key], "extensions": exc.extensions}
                    return {"data": None, "errors": [error]}
        return {"data": data}

    def glimpse(self, request: PreparedRequest) -> Glimpse:
        """What the mutations of a request read before they write, as it is now."""
        writes = [(mutation.kind, mutation.data) for mutation in request.mutations if mutation.kind is not None]
        with self.store.lock:
            return glimpse_of(request.branch, self.store.used_ids, writes)

    def run_mutations(self, request: PreparedRequest, written: Written, glimpse: Glimpse | None = None) -> Answer:
        """Run the mutations of a request in order, each for itself: one that fails undoes none of the others.

        ``written`` is called for each that wrote. ``glimpse`` is what they read before; None lets them read now.

        Raises:
            PlainServerError: one crashed; what ran before it stays written.
        """
        data: dict[str, Any] = {}
        errors: list[dict[str, Any]] = []
        for mutation in request.mutations:
            try:
                with self.store.lock:
                    data[mutation.key] = self._run_mutation(request, mutation, written, glimpse)
            except MutationRefusedError as exc:
                data[mutation.key] = None
                errors.append(located_error(mutation, exc))
            except InvalidFieldsError as exc:
                data[mutation.key] = None
                errors += _field_errors(mutation, exc)
        return {"errors": errors, "data": data} if errors else {"data": data}

    def _run_mutation(
        self, request: PreparedRequest, mutation: MutationField, written: Written, glimpse: Glimpse | None
    ) -> Answer:
        payload = mutation.root.payload
        info = request.branch.info
        if info.status == MERGED and (mutation.kind is not None or mutation.name in RELATIONSHIP_MUTATIONS):
            raise MutationRefusedError(
                f"Branch '{info.name}' has been merged and is read-only. No modifications are allowed.",
                "BRANCH_ALREADY_MERGED",
                400,
                {"branch_name": info.name},
            )
        if mutation.name in RELATIONSHIP_MUTATIONS:
            if not request.may_write:
                raise self._forbidden(request.branch, mutation.data)
            change_peers(request.branch, self.store.writer(request.branch.info.name), mutation.name, mutation.data)
            written(mutation, None)
            return {item.key: True if item.name == "ok" else mutation.name for item in payload}
        if mutation.kind is None or mutation.action is None:
            answer = run_branch_mutation(self.store, mutation.name, mutation.data)
            written(mutation, None)
            return {item.key: answer(item, request.plan.selector) for item in payload}
        done = next(action for action in _ACTIONS if action in mutation.name)  # anywhere, as at the server
        writer = self.store.writer(request.branch.info.name, glimpse)
        node = self._write(writer, mutation.kind, done, mutation.data)
        written(mutation, node)
        reading = Reading(request.branch, request.variables)
        return {item.key: _payload_field(item, node, reading, mutation) for item in payload}

    def _forbidden(self, branch: BranchStore, data: Mapping[str, Any]) -> MutationRefusedError:
        """The one refusal of a permission that comes from a resolver: with HTTP 200 and a path."""
        ids = [data["id"], *(peer["id"] for peer in data.get("nodes") or () if peer.get("id"))]
        kinds = dict.fromkeys(branch.nodes[node_id].kind.name for node_id in ids if node_id in branch.nodes)
        needed = " | ".join(self.permission(kind, "update") for kind in kinds)
        return MutationRefusedError(
            f"You do not have one of the following permissions: {needed}",
            "PERMISSION_DENIED",
            403,
            {"action": None, "resource_kind": None},
        )

    def _write(self, writer: BranchWriter, kind: str, action: str, data: Mapping[str, Any]) -> Node | None:
        match action:
            case "Create":
                return writer.create(kind, data)
            case "Upsert":
                return writer.upsert(kind, data)
            case "Update":
                return writer.update_mutation(kind, data)
            case _:
                writer.delete(kind, data)
                return None

    def _answer_root(self, plan: OperationPlan, root: RootField, reading: Reading) -> Any:
        if root.listing is not None:
            return root.listing(reading)
        name = root.selected.name
        if name == "InfrahubInfo":
            facts = {"version": self._version, "deployment_id": self.store.deployment_id, "__typename": name}
            return {item.key: facts[item.name] for item in root.payload}
        if name == "Branch":
            definition = _root_fields(self.schema.query_type)["Branch"]
            arguments = reading.arguments_of(definition, root.selected.node)
            return answer_branches(self.store, root.selected, arguments, plan.selector)
        return "Query"

    def _mutation(self, root: RootField, variables: dict[str, Any]) -> MutationField:
        name = root.selected.name
        definition = _root_fields(self.schema.mutation_type).get(name)
        arguments = get_argument_values(definition, root.selected.node, variables) if definition is not None else {}
        kind, action = self.kind_and_action(name)
        return MutationField(root.selected.key, name, kind, action, arguments.get("data") or {}, root)


def located_error(mutation: MutationField, error: MutationRefusedError) -> dict[str, Any]:
    """An error as a resolver's error is written: with location, path and catalogue code."""
    location = mutation.root.selected.node.loc
    start = location.start_token if location is not None else None
    return {
        "message": error.message,
        "locations": [{"line": start.line, "column": start.column}] if start is not None else [],
        "path": [mutation.key],
        "extensions": error.extensions,
    }


def _field_errors(mutation: MutationField, error: InvalidFieldsError) -> list[dict[str, Any]]:
    """One wrong field is located at the mutation; several fan out, each with a path of its own and no location."""
    parts = error.errors()
    if len(parts) == 1:
        return [located_error(mutation, parts[0][1])]
    return [
        {"message": part.message, "path": [mutation.name, "data", name], "extensions": part.extensions}
        for name, part in parts
    ]


def _payload_field(item: SelectedField, node: Node | None, reading: Reading, mutation: MutationField) -> Any:
    if item.name == "ok":
        return True
    if item.name == "__typename":
        return mutation.name
    return mutation.root.objects[item.key](node, reading) if node is not None else None


def _root_fields(root: GraphQLObjectType | None) -> Mapping[str, Any]:
    return root.fields if root is not None else {}
