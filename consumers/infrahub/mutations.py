"""Writes as Infrahub takes them: constant text per kind, all values in variables.

Equal text lets the server reuse its parsed and checked form, and a value can never become syntax (FF14).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from consumers.infrahub.observation import Expectation
from ledger.plan.attribute_values import UNINDEXED_KINDS
from ledger.schema import Kind

Form = Literal["Upsert", "Create", "Update"]
Peers = str | list[str]

_IN_NAMESPACES = frozenset({"BuiltinIPPrefix", "BuiltinIPAddress"})
"""Generics of the server's own whose upsert puts an object without a named namespace into the default one."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One write, ready to be sent."""

    query: str
    variables: Mapping[str, Any]
    expected: Expectation


def replaces_unbounded(kind: Kind, payload: Mapping[str, Any]) -> bool:
    """Whether an update sets an attribute whose present value, of which nothing is known here, may be of any size."""
    attributes = kind.attributes
    return any(name in attributes and attributes[name].kind in UNINDEXED_KINDS for name in payload)


@lru_cache(maxsize=1024)
def mutation_text(kind: str, form: Form) -> str:
    """The document of every write of that kind. The id alone is asked for: the rest of the reply is not reliable."""
    return f"mutation {form}($data: {kind}{form}Input!) {{ {kind}{form}(data: $data) {{ ok object {{ id }} }} }}"


def upsert(
    kind: Kind, payload: Mapping[str, Any], peers: Mapping[str, Peers], *, destination_id: str | None
) -> Mutation:
    """The convergent write (P32): with the recorded id it is an update of that object, without any it is a create.

    A create carries no id at all; a null one would take the id path (P25, P34). A prefix or address is updated by
    ``Update``: an upsert that does not name its namespace would move it into the default one, or end at what is there.
    """
    form: Form = "Update" if destination_id is not None and _IN_NAMESPACES & {*kind.inherit_from} else "Upsert"
    data = write_data(kind, payload, peers)
    if destination_id is not None:
        data["id"] = destination_id
    expected = Expectation(
        field=f"{kind.kind}{form}",
        action="create" if destination_id is None else "update",
        node_id=destination_id,
        data=data,
    )
    return Mutation(mutation_text(kind.kind, form), {"data": data}, expected)


def create_with_id(kind: Kind, payload: Mapping[str, Any], peers: Mapping[str, Peers], *, own_id: str) -> Mutation:
    """A create under an id of ours, for kinds that the server cannot match on an upsert (ADR on own ids)."""
    data = {**write_data(kind, payload, peers), "id": own_id}
    expected = Expectation(field=f"{kind.kind}Create", action="create", node_id=own_id, data=data)
    return Mutation(mutation_text(kind.kind, "Create"), {"data": data}, expected)


def write_data(kind: Kind, payload: Mapping[str, Any], peers: Mapping[str, Peers]) -> dict[str, Any]:
    """The input object: ``{value}`` for attributes, ``{id}`` for one peer, ``[{id}]`` for the complete set (P94, P98).

    A null attribute is sent as ``{value: null}``, which clears it; a bare null would be ignored. A null
    cardinality-one relationship is left out (P88). Repeated ids of one set collapse, as they do at the server.
    """
    data: dict[str, Any] = {name: {"value": value} for name, value in payload.items() if name in kind.attributes}
    for name, ids in peers.items():
        data[name] = {"id": ids} if isinstance(ids, str) else [{"id": peer} for peer in dict.fromkeys(ids)]
    return data
