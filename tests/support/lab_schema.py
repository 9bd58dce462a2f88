"""A small Infrahub schema document with one kind for each way in which a kind can be keyed."""

from __future__ import annotations

from typing import Any

from ledger.schema import DestinationSchema, parse_schema


def attribute(name: str, kind: str = "Text", **more: Any) -> dict[str, Any]:
    """An attribute as ``/api/schema`` serves it."""
    return {"name": name, "kind": kind, "optional": False, "read_only": False, "unique": False, **more}


def relationship(name: str, peer: str, cardinality: str = "one", **more: Any) -> dict[str, Any]:
    """A relationship as ``/api/schema`` serves it."""
    return {
        "name": name,
        "peer": peer,
        "cardinality": cardinality,
        "kind": "Attribute",
        "identifier": f"{name}__{peer.lower()}",
        "optional": True,
        **more,
    }


def node(
    namespace: str,
    name: str,
    *,
    attributes: list[dict[str, Any]],
    relationships: list[dict[str, Any]] | None = None,
    hfid: list[str] | None = None,
    constraints: list[list[str]] | None = None,
    inherit_from: list[str] | None = None,
) -> dict[str, Any]:
    """A node kind as ``/api/schema`` serves it."""
    return {
        "namespace": namespace,
        "name": name,
        "kind": f"{namespace}{name}",
        "hash": "0" * 32,
        "attributes": attributes,
        "relationships": relationships or [],
        "human_friendly_id": hfid,
        "uniqueness_constraints": constraints,
        "inherit_from": inherit_from or [],
    }


def lab_document() -> dict[str, Any]:
    """Sites and racks (one generic above both), devices, VLANs without a human-friendly id, notes without any key."""
    name = attribute("name", unique=True)
    place_name = attribute("name")
    place = {"namespace": "Lab", "name": "Place", "kind": "LabPlace", "hash": "0" * 32, "attributes": [place_name]}
    site = node(
        "Lab",
        "Site",
        attributes=[name, attribute("description", optional=True)],
        hfid=["name__value"],
        inherit_from=["LabPlace"],
    )
    rack = node(
        "Lab",
        "Rack",
        attributes=[place_name],
        relationships=[relationship("site", "LabSite", optional=False)],
        hfid=["site__name__value", "name__value"],
        constraints=[["site", "name__value"]],
        inherit_from=["LabPlace"],
    )
    device = node(
        "Lab",
        "Device",
        attributes=[
            name,
            attribute("description", optional=True),
            attribute("mtu", "Number", optional=True),
            attribute("enabled", "Boolean", optional=True, default_value=True),
            attribute("extra", "JSON", optional=True),
            attribute("labels", "List", optional=True),
            attribute("serial", optional=True, read_only=True),
            attribute("secret", "Password", optional=True),
        ],
        relationships=[
            relationship("site", "LabSite", optional=False),
            relationship("rack", "LabRack"),
            relationship("tags", "BuiltinTag", "many"),
        ],
        hfid=["name__value"],
    )
    vlan = node(
        "Lab",
        "Vlan",
        attributes=[attribute("vid", "Number"), attribute("name", optional=True)],
        relationships=[relationship("place", "LabPlace", optional=False)],
        constraints=[["place", "vid__value"]],
    )
    address = node("Lab", "Address", attributes=[attribute("address", "IPHost", unique=True)], hfid=["address__value"])
    note = node("Lab", "Note", attributes=[attribute("text", optional=True)])
    tag = node("Builtin", "Tag", attributes=[name], hfid=["name__value"])
    return {
        "main": "a" * 32,
        "nodes": [site, rack, device, vlan, address, note, tag],
        "generics": [place],
        "profiles": [],
        "templates": [],
        "namespaces": [],
    }


def lab_schema() -> DestinationSchema:
    """The same, parsed."""
    return parse_schema(lab_document())
