"""What a branch holds, read by infrahub-sdk, which shares no reading code with the program under test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from typing import Any

from infrahub_sdk import Config, InfrahubClient
from infrahub_sdk.node import InfrahubNode
from infrahub_sdk.schema import MainSchemaTypesAPI

from ledger.plan.canonical import canonical_identity, canonical_json_bytes
from ledger.plan.model import PlannedOperation
from tests.live.infrahub import LiveBranch

_PAGE = 100
_ADDRESSES = (IPv4Interface, IPv6Interface, IPv4Network, IPv6Network)
"""What the SDK makes of an address; its text is what is stored."""

ObjectKey = tuple[str, bytes]
"""Kind and canonical identity of an object, as a plan names it."""


def key_of(kind: str, identity: Mapping[str, Any]) -> ObjectKey:
    """How a plan's object is found."""
    return kind, canonical_json_bytes(canonical_identity(identity, kind=kind))


def totals_of(branch: LiveBranch, kinds: Iterable[str]) -> dict[str, int]:
    """How many objects of each kind there are by the server's own count, in which a doubled one counts twice."""
    return {kind: branch.query(f"query {{ {kind} {{ count }} }}")[kind]["count"] for kind in kinds}


@dataclass
class BranchContent:
    """The objects of some kinds, by id."""

    nodes: dict[str, InfrahubNode] = field(default_factory=dict)
    schemas: dict[str, MainSchemaTypesAPI] = field(default_factory=dict)
    edges: dict[tuple[str, str], int] = field(default_factory=dict)
    """The server's count of peers by node id and relationship; a doubled edge is seen there and in no row."""
    hfids: dict[str, list[str] | None] = field(default_factory=dict)
    """Human-friendly ids by node id, as the server makes them."""

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
            nodes = await client.all(kind, branch=branch.name, include=many, populate_store=False)
            content.nodes |= {str(node.id): node for node in nodes}
            content._count(branch, kind, [str(node.id) for node in nodes], many)
        return content

    def _count(self, branch: LiveBranch, kind: str, ids: Sequence[str], relationships: Sequence[str]) -> None:
        """Ask for what the SDK does not tell of some objects of a kind."""
        fields = " ".join(f"{name} {{ count }}" for name in relationships)
        text = f"query($ids: [ID]) {{ {kind}(ids: $ids) {{ edges {{ node {{ id hfid {fields} }} }} }} }}"
        for start in range(0, len(ids), _PAGE):
            for edge in branch.query(text, {"ids": list(ids[start : start + _PAGE])})[kind]["edges"]:
                node = edge["node"]
                self.hfids[node["id"]] = node["hfid"]
                self.edges |= {(node["id"], name): node[name]["count"] for name in relationships}

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
            stored_ids = self.peer_ids(node, reference.field)
            if planned_ids != stored_ids:
                found.append(f"{where}.{reference.field}: planned {planned_ids}, stored {stored_ids}")
            count = self.edges.get((str(node.id), reference.field), len(stored_ids))
            if count != len(planned_ids):
                found.append(f"{where}.{reference.field}: planned {len(planned_ids)} peers, the server counts {count}")
        return found

    def peer_ids(self, node: InfrahubNode, name: str) -> list[str]:
        """The ids of the peers under a relationship, sorted."""
        related = getattr(node, name)
        peers = related.peers if hasattr(related, "peers") else [related]
        return sorted(str(peer.id) for peer in peers if peer.id is not None)


def stored_value(attribute: Any) -> Any:
    """What is stored, as plain data."""
    return str(attribute.value) if isinstance(attribute.value, _ADDRESSES) else attribute.value


def _is_data(relationship: Any) -> bool:
    """Whether a mapping may write it; the rest is the server's own."""
    return str(relationship.kind) not in ("Group", "Profile", "Hierarchy") and relationship.cardinality == "many"


def _is_equal(planned: Any, stored: Any) -> bool:
    """Whether a stored attribute is the planned value, to the byte: 1, 1.0 and true are three values.

    A null that was written where the schema has a default is read back as that default.
    """
    if planned is None:
        return stored.value is None or bool(stored.is_default)
    return canonical_json_bytes(planned) == canonical_json_bytes(stored_value(stored))
