"""Objects of a branch: as a plan writes them, and as somebody else has put them there."""

from __future__ import annotations

from typing import Any

from ledger.plan.model import PlannedOperation, RelationshipReference
from tests.live.infrahub import LiveBranch
from tests.live.writing import create as put
from tests.support.operations import create, many, update


def site(name: str, *references: RelationshipReference, **payload: Any) -> PlannedOperation:
    """The create of a site."""
    return create("LocationSite", {"name": name}, {"name": name, **payload}, *references)


def changed_site(name: str, node_id: str, *references: RelationshipReference, **payload: Any) -> PlannedOperation:
    """The update of one that is there; it is called ``name`` afterwards."""
    return update("LocationSite", {"name": name}, {"name": name, **payload}, *references, destination_id=node_id)


def tags(*names: str) -> RelationshipReference:
    """A set of tags."""
    return many("tags", "BuiltinTag", *({"name": name} for name in names))


def put_tags(branch: LiveBranch, *names: str) -> list[str]:
    """Tags that are there; their ids."""
    return [put(branch, "BuiltinTag", name={"value": name}) for name in names]


def put_device(branch: LiveBranch, name: str) -> str:
    """A device that is there, with all that it needs; its id."""
    maker = put(branch, "OrganizationManufacturer", name={"value": f"maker of {name}"})
    model = put(branch, "DcimDeviceType", name={"value": "m"}, manufacturer={"id": maker})
    place = put(branch, "LocationSite", name={"value": f"place of {name}"})
    return put(branch, "DcimDevice", name={"value": name}, device_type={"id": model}, location={"id": place})


def put_cable_ends(branch: LiveBranch) -> list[dict[str, str]]:
    """Two ports of one device, which a cable needs."""
    device = put_device(branch, "d")
    ports = [put(branch, "DcimConsolePort", name={"value": name}, device={"id": device}) for name in ("a", "b")]
    return [{"id": port} for port in ports]


def deleted(branch: LiveBranch, kind: str, node_id: str) -> None:
    """Take an object away again."""
    branch.query(f"mutation($id: String!) {{ {kind}Delete(data: {{id: $id}}) {{ ok }} }}", {"id": node_id})
