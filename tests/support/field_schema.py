"""The sandbox's schema, and kinds for what goes wrong with keys, circles, numbers, moments and secrets."""

from __future__ import annotations

from typing import Any

from tests.support.sandbox_schema import attribute, kind, relationship, sandbox_schema


def _key(name: str, attribute_kind: str = "Text", **changes: Any) -> dict[str, Any]:
    return attribute(name, attribute_kind, optional=False, **changes)


def _needs(name: str, peer: str, identifier: str, **changes: Any) -> dict[str, Any]:
    return relationship(name, peer, identifier, optional=False, min_count=1, max_count=1, **changes)


def _keyed() -> list[dict[str, Any]]:
    """Kinds by what their key is made of."""
    number_and_flag = [_key("number", "Number"), _key("live", "Boolean"), attribute("notes")]
    return [
        # the peer of the key is optional at the server, which is what makes a create without it a second object
        kind(
            "Room",
            [_key("name"), attribute("notes")],
            [relationship("site", "LabSite", "site__room")],
            hfid=["name__value", "site__name__value"],
        ),
        kind("Unit", number_and_flag, hfid=["number__value", "live__value"]),
        kind("Part", [_key("first"), _key("second"), attribute("notes")], hfid=["first__value", "second__value"]),
        kind("Host", [_key("address", "IPHost"), attribute("notes")], hfid=["address__value"]),
        kind("Event", [_key("since", "DateTime"), attribute("until", "DateTime")], hfid=["since__value"]),
        kind("Lease", [attribute("slot", "NumberPool"), attribute("name")], hfid=["slot__value"]),
        kind("Derived", [attribute("name"), attribute("slug", read_only=True)], hfid=["slug__value"]),
    ]


def _referring() -> list[dict[str, Any]]:
    """Kinds by whom they refer to."""
    return [
        kind(
            "Group",
            [_key("name", unique=True)],
            [
                relationship("parent", "LabGroup", "group__parent", direction="outbound"),
                relationship("friend", "LabGroup", "group__friend", direction="outbound"),
            ],
            hfid=["name__value"],
        ),
        kind(
            "Cell",
            [_key("name", unique=True)],
            [_needs("neighbour", "LabCell", "cell__neighbour", direction="outbound")],
            hfid=["name__value"],
        ),
        kind(
            "Plug",
            [_key("name", unique=True)],
            [
                relationship("host", "LabHost", "plug__host"),
                relationship("unit", "LabUnit", "plug__unit"),
                relationship("area", "LabArea", "plug__area"),
            ],
            hfid=["name__value"],
        ),
        kind("Safe", [_key("name", unique=True), attribute("code", "Password")], hfid=["name__value"]),
    ]


def _of_generics() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two kinds that share names freely, and two that share a serial number that nobody else may have."""
    shared = [attribute("serial", optional=True, unique=True, inherited=True)]
    nodes = [
        kind("State", [_key("name")], hfid=["name__value"], constraints=[["name__value"]], generics=["LabArea"]),
        kind("Country", [_key("name")], hfid=["name__value"], constraints=[["name__value"]], generics=["LabArea"]),
        kind("Server", [_key("name", unique=True), *shared], hfid=["name__value"], generics=["LabAsset"]),
        kind("Router", [_key("name", unique=True), *shared], hfid=["name__value"], generics=["LabAsset"]),
    ]
    generics = [
        {**kind("Area", [_key("name")]), "used_by": ["LabState", "LabCountry"]},
        {
            **kind("Asset", [attribute("serial", unique=True)], constraints=[["serial__value"]]),
            "used_by": ["LabServer", "LabRouter"],
        },
    ]
    for generic in generics:
        del generic["inherit_from"]
    return nodes, generics


def field_schema() -> dict[str, Any]:
    """The document."""
    document = sandbox_schema()
    nodes, generics = _of_generics()
    document["nodes"] += [*_keyed(), *_referring(), *nodes]
    document["generics"] += generics
    return document
