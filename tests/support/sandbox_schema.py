"""A small schema document in the shape of ``GET /api/schema``, with the cases that a destination makes difficult."""

from __future__ import annotations

from typing import Any


def attribute(name: str, kind: str = "Text", **changes: Any) -> dict[str, Any]:
    """One attribute, optional unless said otherwise."""
    facts: dict[str, Any] = {
        "name": name,
        "kind": kind,
        "optional": True,
        "read_only": False,
        "unique": False,
        "default_value": None,
        "choices": None,
        "enum": None,
        "regex": None,
        "min_length": None,
        "max_length": None,
        "parameters": {},
        "computed_attribute": None,
        "inherited": False,
        "branch": "aware",
        "state": "present",
    }
    return {**facts, **changes}


def relationship(name: str, peer: str, identifier: str, **changes: Any) -> dict[str, Any]:
    """One relationship, optional and single unless said otherwise."""
    facts: dict[str, Any] = {
        "name": name,
        "peer": peer,
        "identifier": identifier,
        "kind": "Attribute",
        "cardinality": "one",
        "direction": "bidirectional",
        "optional": True,
        "read_only": False,
        "min_count": 0,
        "max_count": 0,
        "on_delete": "no-action",
        "hierarchical": None,
        "inherited": False,
        "branch": "aware",
        "state": "present",
    }
    return {**facts, **changes}


def kind(
    name: str,
    attributes: list[dict[str, Any]],
    relationships: list[dict[str, Any]] | None = None,
    *,
    hfid: list[str] | None = None,
    constraints: list[list[str]] | None = None,
    generics: list[str] | None = None,
) -> dict[str, Any]:
    """One node kind of the namespace Lab."""
    return {
        "kind": f"Lab{name}",
        "namespace": "Lab",
        "name": name,
        "label": name,
        "attributes": attributes,
        "relationships": relationships or [],
        "human_friendly_id": hfid,
        "uniqueness_constraints": constraints,
        "inherit_from": generics or [],
        "display_label": "name__value",
        "default_filter": None,
        "branch": "aware",
        "hash": name,
        "generate_profile": False,
    }


def _generic(name: str, attributes: list[dict[str, Any]], used_by: list[str], **changes: Any) -> dict[str, Any]:
    made = kind(name, attributes)
    del made["inherit_from"]
    return {**made, "used_by": used_by, **changes}


def _many(name: str, peer: str, identifier: str, **changes: Any) -> dict[str, Any]:
    return relationship(name, peer, identifier, cardinality="many", kind="Generic", **changes)


def _mandatory(name: str, peer: str, identifier: str, **changes: Any) -> dict[str, Any]:
    return relationship(name, peer, identifier, optional=False, min_count=1, max_count=1, **changes)


STATUS = [
    {"name": name, "label": name.title(), "color": "#ffffff", "description": ""} for name in ("active", "drained")
]


def _site() -> dict[str, Any]:
    attributes = [
        attribute("name", optional=False, unique=True),
        attribute("description"),
        attribute("status", "Dropdown", choices=STATUS, default_value="active"),
        attribute("code", regex="^[A-Z0-9]+$", parameters={"regex": "^[A-Z0-9]+$"}),
        attribute("priority", "Number", parameters={"min_value": 1, "max_value": 9}),
        attribute("asset", unique=True),
        attribute("computed", read_only=True),
    ]
    relationships = [
        _many("devices", "LabDevice", "site__device"),
        _many("tags", "LabTag", "site__tag"),
        _many("racks", "LabPlace", "site__rack", on_delete="cascade"),
        relationship("parent", "LabSite", "site__parent", direction="outbound"),
        _many("children", "LabSite", "site__parent", direction="inbound"),
    ]
    return kind(
        "Site", attributes, relationships, hfid=["name__value"], constraints=[["name__value"], ["asset__value"]]
    )


def _device() -> dict[str, Any]:
    attributes = [
        attribute("name", optional=False, unique=True),
        attribute("role", enum=["leaf", "spine"]),
        attribute("settings", "JSON"),
        attribute("labels", "List"),
        attribute("address", "IPHost"),
        attribute("network", "IPNetwork"),
        attribute("mac", "MacAddress"),
        attribute("since", "DateTime"),
        attribute("homepage", "URL"),
        attribute("mail", "Email"),
        attribute("notes", "TextArea"),
        attribute("enabled", "Boolean", default_value=True),
        attribute("height", "Number"),
        attribute("short", min_length=2, max_length=4),
    ]
    relationships = [
        _mandatory("site", "LabSite", "site__device"),
        relationship("backup_site", "LabSite", "backup__device"),
        _many("tags", "LabTag", "device__tag"),
        _many("ports", "LabPort", "device__port", on_delete="cascade"),
        relationship("place", "LabPlace", "device__place"),
    ]
    return kind("Device", attributes, relationships, hfid=["name__value"], constraints=[["name__value"]])


def _rack(name: str) -> dict[str, Any]:
    """Two kinds of one generic, keyed by site and name, which the generic makes unique across both."""
    relationships = [_mandatory("site", "LabSite", "site__rack")]
    return kind(
        name,
        [attribute("name", optional=False, inherited=True)],
        relationships,
        hfid=["site__name__value", "name__value"],
        constraints=[["site", "name__value"]],
        generics=["LabPlace"],
    )


def sandbox_schema() -> dict[str, Any]:
    """The document. Kinds: Tag, Site, Device, Port (constraint alone), Log (no key), Rack and Cabinet (of Place)."""
    place = _generic(
        "Place",
        [attribute("name", optional=False)],
        ["LabRack", "LabCabinet"],
        relationships=[_mandatory("site", "LabSite", "site__rack")],
        uniqueness_constraints=[["site", "name__value"]],
        human_friendly_id=["site__name__value", "name__value"],
    )
    port = kind(
        "Port",
        [attribute("name", optional=False), attribute("speed", "Number")],
        [_mandatory("device", "LabDevice", "device__port", kind="Parent")],
        constraints=[["device", "name__value"]],
    )
    tag = kind("Tag", [attribute("name", optional=False, unique=True)], hfid=["name__value"])
    nodes = [tag, _site(), _device(), port, kind("Log", [attribute("name")]), _rack("Rack"), _rack("Cabinet")]
    return {"main": "0" * 32, "nodes": nodes, "generics": [place], "profiles": [], "templates": [], "namespaces": []}
