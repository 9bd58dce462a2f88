"""The two real inventories as each round of the bench needs them: the same objects under new names, on both sides.

Both programs read one configuration format. What differs in the two files is only what a program needs to find the
source: ours reads JSON Lines by itself, infrahub-sync through the adapter beside this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.bench.live.sizes import Sizes
from tests.live.inventories import cut_library, rows_of, write_rows
from tests.support.fake_reader import DATA
from tests.support.planning import LIBRARY, NETBOX

ADAPTER = Path(__file__).with_name("jsonl_adapter.py")
_NAMES = ("name", "slug", "model")
_KEPT_NAMES = {"dcim.devices"}
"""A transform of the configuration looks for one of their names; branches keep them apart all the same."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """Rows and the mapping of them.

    Attributes:
        name: for people and folders.
        configuration: the document as it is in the tests' data, with the mapping that is used.
        cut: puts the files of the rows into a new folder.
    """

    name: str
    configuration: dict[str, Any]
    cut: Callable[[Path], Path]

    @property
    def mapping(self) -> list[dict[str, Any]]:
        """Entries of the mapping."""
        entries: list[dict[str, Any]] = self.configuration["schema_mapping"]
        return entries

    def rows(self, folder: Path, prefix: str) -> Path:
        """The rows below ``folder``, with ``prefix`` before each name; returns where they are."""
        folder.mkdir(parents=True)
        whole, renamed = self.cut(folder), folder / prefix
        renamed.mkdir()
        for endpoint in {entry["mapping"] for entry in self.mapping}:
            rows = rows_of(whole / f"{endpoint}.jsonl")
            names = () if endpoint in _KEPT_NAMES else _NAMES
            write_rows(renamed / f"{endpoint}.jsonl", [_renamed(row, names, prefix) for row in rows])
        return renamed

    def ours(self, path: Path, rows: Path) -> Path:
        """The configuration for our program."""
        return self._saved(path, {"name": "jsonl", "settings": {"directory": str(rows)}}, self.configuration)

    def theirs(self, path: Path, rows: Path, *, url: str, token: str) -> Path:
        """The same for infrahub-sync."""
        source = {"name": "jsonl", "adapter": str(ADAPTER), "settings": {"directory": str(rows)}}
        destination = {"name": "infrahub", "settings": {"url": url, "token": token}}
        return self._saved(path, source, self.configuration | {"destination": destination})

    @staticmethod
    def _saved(path: Path, source: dict[str, Any], document: dict[str, Any]) -> Path:
        path.write_text(
            yaml.safe_dump(document | {"source": source}, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        return path


def device_types(sizes: Sizes) -> Inventory:
    """A part of the device-type library, from all over it."""
    whole = DATA / "devicetype-library/day1"
    return Inventory(
        "device types", _document(LIBRARY), lambda folder: cut_library(whole, folder / "cut", sizes.device_types)
    )


def netbox(sizes: Sizes) -> Inventory:
    """The NetBox demo, from sites to devices, without references inside one kind.

    Regions below regions: infrahub-sync writes the objects of a kind in the order of their names and ends with an
    error where a parent comes later. Ours writes them level by level, so on its own it would keep the trees.
    """
    document = _document(NETBOX)
    document["schema_mapping"] = [
        entry | {"fields": [field for field in entry["fields"] if _is_kept(field, entry["name"], sizes)]}
        for entry in document["schema_mapping"]
        if entry["name"] in sizes.netbox_kinds
    ]
    return Inventory("NetBox", document, lambda _folder: DATA / "netbox-demo-data/day1")


def _is_kept(field: dict[str, Any], kind: str, sizes: Sizes) -> bool:
    reference = field.get("reference")
    return reference is None or (reference in sizes.netbox_kinds and reference != kind)


def _document(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document


def _renamed(row: dict[str, Any], names: tuple[str, ...], prefix: str) -> dict[str, Any]:
    return row | {name: f"{prefix}{row[name]}" for name in names if isinstance(row.get(name), str) and row[name]}
