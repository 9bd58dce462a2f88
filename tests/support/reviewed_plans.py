"""A saved plan with something of everything, and how a review shows it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from ledger.plan.coverage import Difference, MappingEntry
from ledger.plan.review import read_saved_plan, render_review
from tests.support.plan_rules import coverage_line as line
from tests.support.plan_rules import create, operation, pair, ref, save_plan, update


def shown(run_dir: Path, *, colour: bool = False, width: int = 200, **options: Any) -> str:
    """What a terminal shows of a plan."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, color_system="truecolor" if colour else None)
    render_review(read_saved_plan(run_dir), console, **options)
    return out.getvalue()


def world(run_dir: Path, **manifest: Any) -> Path:
    """Three creates, two updates, two recorded deletes, a skip, forty unchanged."""
    site = pair("LocationSite", name="dc1")
    operations = [
        create("BuiltinTag", {"name": "prod"}, {"description": "Production"}),
        create("BuiltinTag", {"name": "staging"}),
        operation(
            "create",
            "LocationRack",
            {"name": "r1", "site": site},
            {},
            [ref("site", "LocationSite", {"name": "dc1"})],
            tier=1,
        ),
        update(
            "DcimDevice",
            {"name": "sw1"},
            {"mtu": 0, "description": None, "comments": "a\nB\nc"},
            ref("site", "LocationSite", {"name": "dc1"}),
        ),
        update("LocationSite", {"name": "dc1"}, {}, ref("asns", "IpamASN", many=True)),
        operation("delete", "BuiltinTag", {"name": "old"}),
        operation("delete", "IpamASN", {"asn": 65001}),
    ]
    asns = [pair("IpamASN", asn=1), pair("IpamASN", asn=2)]
    coverage = [line("create", item.kind, item.identity, tier=item.tier) for item in operations[:3]]
    coverage += [
        line(
            "update",
            "DcimDevice",
            {"name": "sw1"},
            differences={
                "mtu": Difference(observed=9000, desired=0),
                "description": Difference(observed="", desired=None),
                "comments": Difference(observed="a\nb\nc", desired="a\nB\nc"),
                "site": Difference(observed=pair("LocationSite", name="dc0"), desired=site),
            },
            entry=MappingEntry(index=12, name="dcim.devices"),
            filters=[{"field": "name", "operation": "is_not_empty"}],
        ),
        line("update", "LocationSite", {"name": "dc1"}, differences={"asns": Difference(observed=asns, desired=[])}),
        line("remove", "BuiltinTag", {"name": "old"}),
        line(
            "remove", "IpamASN", {"asn": 65001}, differences={"description": Difference(observed="bye", desired=None)}
        ),
        line("skip", "DcimDevice", {"name": "sw9"}, reason="its location was skipped"),
    ]
    coverage += [line("none", "DcimPlatform", {"name": f"p{number}"}) for number in range(40)]
    return save_plan(run_dir, operations, coverage, **manifest)
