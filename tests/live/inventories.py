"""The two real inventories in a size that a test can afford, or whole.

A server writes some fifteen objects a second. So the NetBox demo is cut to what stands between sites and devices, and
the library to some device types with what they need and what hangs on them; both are real rows of the real files.
``APPLY_LEDGER_TEST_LIVE_ROWS`` sets the number of device types; ``all`` takes both inventories whole.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import yaml

from tests.support.fake_reader import DATA
from tests.support.planning import LIBRARY, NETBOX

ROWS = "APPLY_LEDGER_TEST_LIVE_ROWS"
_DEVICE_TYPES = 60
_TEMPLATES_OF_A_TYPE = 2
SITES_TO_DEVICES = {
    "BuiltinTag",
    "OrganizationTenantGroup",
    "OrganizationTenant",
    "OrganizationManufacturer",
    "OrganizationRIR",
    "LocationRegion",
    "LocationSiteGroup",
    "IpamASN",
    "LocationSite",
    "LocationRow",
    "DcimRackRole",
    "LocationRack",
    "DcimPlatform",
    "DcimDeviceRole",
    "DcimDeviceType",
    "DcimVirtualChassis",
    "DcimDevice",
}


def netbox(folder: Path, day: str) -> Path:
    """The configuration of one day of the NetBox demo, sites to devices."""
    document = yaml.safe_load(NETBOX.read_text(encoding="utf-8"))
    document["source"]["settings"]["directory"] = str(DATA / "netbox-demo-data" / day)
    if os.environ.get(ROWS) != "all":
        document["schema_mapping"] = [
            {**entry, "fields": [field for field in entry["fields"] if _is_kept(field)]}
            for entry in document["schema_mapping"]
            if entry["name"] in SITES_TO_DEVICES
        ]
    return _saved(folder / f"netbox-{day}.yml", document)


def library(folder: Path, *, count: int | None = None) -> Path:
    """The configuration of the device-type library, some types of it; ``count`` of them, whatever the variable says."""
    document = yaml.safe_load(LIBRARY.read_text(encoding="utf-8"))
    wanted = str(count) if count is not None else os.environ.get(ROWS, str(_DEVICE_TYPES))
    directory = DATA / "devicetype-library/day1"
    document["source"]["settings"]["directory"] = str(directory)
    if wanted != "all":
        document["source"]["settings"]["directory"] = str(cut_library(directory, folder / "library", int(wanted)))
    return _saved(folder / "library.yml", document)


def _is_kept(field: dict[str, Any]) -> bool:
    reference = field.get("reference")
    return reference is None or reference in SITES_TO_DEVICES


def cut_library(whole: Path, part: Path, count: int) -> Path:
    """Device types from all over the library, the manufacturers of these, and the first templates of each."""
    part.mkdir()
    types = rows_of(whole / "dcim.device-types.jsonl")
    types = types[:: max(1, len(types) // count)][:count]
    chosen = {row["id"] for row in types}
    makers = {row["manufacturer"]["id"] for row in types}
    write_rows(part / "dcim.device-types.jsonl", types)
    write_rows(
        part / "dcim.manufacturers.jsonl",
        [row for row in rows_of(whole / "dcim.manufacturers.jsonl") if row["id"] in makers],
    )
    for path in sorted(whole.glob("dcim.*-templates.jsonl")):
        taken: dict[str, int] = dict.fromkeys(chosen, 0)
        kept = []
        for row in rows_of(path):
            owner = row["device_type"]["id"]
            if taken.get(owner, _TEMPLATES_OF_A_TYPE) < _TEMPLATES_OF_A_TYPE:
                taken[owner] += 1
                kept.append(row)
        write_rows(part / path.name, kept)
    return part


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON Lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    """Save rows as JSON Lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _saved(path: Path, document: dict[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path
