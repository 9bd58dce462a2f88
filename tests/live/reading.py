"""What a branch holds, read by infrahub-sdk, which shares no reading code with the program under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from infrahub_sdk import Config, InfrahubClient
from infrahub_sdk.node import InfrahubNode
from infrahub_sdk.schema import MainSchemaTypesAPI

from ledger.plan.canonical import canonical_identity, canonical_json_bytes
from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch

_PAGE = 100

ObjectKey = tuple[str, bytes]
"""Kind and canonical identity of an object, as a plan names it."""


def key_of(kind: str, identity: Mapping[str, Any]) -> ObjectKey:
    """How a plan's object is found."""
    return kind, canonical_json_bytes(canonical_identity(identity, kind=kind))


@dataclass
class BranchContent:
    """The objects of some kinds, by id."""

    nodes: dict[str, InfrahubNode] = field(default_factory=dict)
    schemas: dict[str, MainSchemaTypesAPI] = field(default_factory=dict)

    @classmethod
    async def read(cls, branch: LiveBranch, kinds: Iterable[str]) -> BranchContent:
        """All objects of these kinds, with attributes and relationships."""
        config = Config(
            address=branch.url, api_token=branch.token, default_branch=branch.name, pagination_size=_PAGE, timeout=120
        )
        client, content = InfrahubClient(config=config), cls()
        for kind in sorted(kinds):
            content.schemas[kind] = schema = await client.schema.get(kind, branch=branch.name)
            many = [relationship.name for relationship in schema.relationships if _is_data(relationship)]
            for node in await client.all(kind, branch=branch.name, include=many, populate_store=False):
                content.nodes[str(node.id)] = node
        return content

    def differences(self, operation: PlannedOperation, ids: Mapping[ObjectKey, str]) -> list[str]:
        """Each field in which the object of an operation is not what the plan says, in words."""
        node = self.nodes.get(ids.get(key_of(operation.kind, operation.identity), ""))
        where = f"{operation.kind} {operation.identity}"
        if node is None:
            return [f"{where}: not there"]
        found = []
        for name, planned in (operation.payload or {}).items():
            if self.schemas[operation.kind].get_relationship_or_none(name) is not None:
                continue  # a null peer is left out of the write: nothing is said of what is there
            stored = getattr(node, name)
            if not _is_equal(planned, stored):
                found.append(f"{where}.{name}: planned {planned!r}, stored {stored.value!r}")
        for reference in operation.relationships or ():
            planned_ids = sorted(ids.get(key_of(reference.peer_kind, peer), "unknown") for peer in reference.peers)
            related = getattr(node, reference.field)
            peers = [related] if reference.cardinality == "one" else related.peers
            stored_ids = sorted(str(peer.id) for peer in peers)
            if planned_ids != stored_ids:
                found.append(f"{where}.{reference.field}: planned {planned_ids}, stored {stored_ids}")
        return found


def _is_data(relationship: Any) -> bool:
    """Whether a mapping may write it; the rest is the server's own."""
    return str(relationship.kind) not in ("Group", "Profile", "Hierarchy") and relationship.cardinality == "many"


def _is_equal(planned: Any, stored: Any) -> bool:
    """Whether a stored attribute is the planned value; the SDK reads addresses into objects of their own.

    A null that was written where the schema has a default is read back as that default.
    """
    value = stored.value
    if planned is None:
        return value is None or bool(stored.is_default)
    if isinstance(planned, str) and not isinstance(value, str):
        value = str(value)
    return type(planned) is type(value) and bool(planned == value)
