"""The destination that hostile plans are made for: the golden plans' kinds, and one for each way of keying."""

from __future__ import annotations

from ledger.schema import DestinationSchema, parse_schema
from tests.support.lab_schema import attribute, lab_document, node, relationship


def hostile_schema() -> DestinationSchema:
    """The lab's kinds and those of the golden plans."""
    document = lab_document()
    name = attribute("name", unique=True)
    text = attribute("description", optional=True)
    tag = node("Builtin", "Tag", attributes=[name, text], hfid=["name__value"])
    site = node("Location", "Site", attributes=[name, text], hfid=["name__value"])
    rack = node(
        "Location",
        "Rack",
        attributes=[attribute("name")],
        relationships=[relationship("site", "LocationSite", optional=False)],
        hfid=["site__name__value", "name__value"],
    )
    device = node(
        "Dcim",
        "Device",
        attributes=[name, text, attribute("mtu", "Number", optional=True)],
        relationships=[relationship("site", "LocationSite"), relationship("tags", "BuiltinTag", "many")],
        hfid=["name__value"],
    )
    person = node("Org", "Person", attributes=[name], hfid=["name__value"])
    team = node(
        "Org",
        "Team",
        attributes=[name],
        relationships=[relationship("members", "OrgPerson", "many")],
        hfid=["name__value"],
    )
    kept = [kind for kind in document["nodes"] if kind["kind"] != "BuiltinTag"]
    return parse_schema({**document, "nodes": [*kept, tag, site, rack, device, person, team]})
