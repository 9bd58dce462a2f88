"""The kinds that the cases use: how they get onto a real server, and what such a server then says of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import yaml

HERE = Path(__file__).parent
PROBE_FILE = HERE / "probe-schema.yml"
SERVED_FILE = HERE.parent / "recorded" / "probe-schema.json"
INVENTORY_FILE = HERE.parents[1] / "data" / "schema-api.json"

_LOAD_SECONDS = 300.0
_UNSTEADY = frozenset({"id", "hash", "include_in_menu", "order_weight"})
"""What differs between two servers that hold the same kinds: ids, hashes over them, and in what order they came."""


def sandbox_document() -> dict[str, Any]:
    """The schema of the inventories and the probe kinds, as a real server serves them together."""
    inventory: dict[str, Any] = json.loads(INVENTORY_FILE.read_text(encoding="utf-8"))
    probe = json.loads(SERVED_FILE.read_text(encoding="utf-8"))
    return {**inventory, **{part: [*inventory[part], *probe[part]] for part in ("nodes", "generics")}}


def ensure_probe_kinds(url: str, token: str) -> None:
    """Load the probe kinds where the default branch lacks any of their fields; additive, some ten seconds.

    Raises:
        RuntimeError: the server does not take them.
    """
    served = {name: _fields(raw) for name, (_, raw) in _probe_kinds(url, token).items()}
    document = yaml.safe_load(PROBE_FILE.read_text(encoding="utf-8"))
    if all(fields <= served.get(name, set()) for name, fields in _declared(document).items()):
        return
    with _client(url, token) as http:
        answer = http.post("/api/schema/load", params={"branch": "main"}, json={"schemas": [document]})
    if answer.status_code != 200 or answer.json().get("errors"):
        raise RuntimeError(f"the probe kinds were not loaded: HTTP {answer.status_code} {answer.text[:500]}")


def served_probe_kinds(url: str, token: str) -> dict[str, Any]:
    """What ``GET /api/schema`` says of the probe kinds, without what differs from server to server."""
    kinds = _probe_kinds(url, token)
    parts: dict[str, Any] = {"nodes": [], "generics": []}
    for name in sorted(kinds):
        part, raw = kinds[name]
        parts[part].append(_steady(raw))
    return parts


def declared_kinds(file: Path) -> list[str]:
    """The kinds that have objects, of a schema file."""
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    return [f"{kind['namespace']}{kind['name']}" for kind in document["nodes"]]


def _declared(document: dict[str, Any]) -> dict[str, set[str]]:
    kinds = (*document["generics"], *document["nodes"])
    return {f"{kind['namespace']}{kind['name']}": _fields(kind) for kind in kinds}


def _fields(kind: dict[str, Any]) -> set[str]:
    """``__kind__`` stands for the kind itself: one that declares nothing of its own has to be there too."""
    return {"__kind__", *(item["name"] for part in ("attributes", "relationships") for item in kind.get(part) or ())}


def _probe_kinds(url: str, token: str) -> dict[str, tuple[str, dict[str, Any]]]:
    with _client(url, token) as http:
        document = http.get("/api/schema", params={"branch": "main"}).raise_for_status().json()
    wanted = set(_declared(yaml.safe_load(PROBE_FILE.read_text(encoding="utf-8"))))
    found = ((part, raw) for part in ("nodes", "generics") for raw in document[part])
    return {raw["kind"]: (part, raw) for part, raw in found if raw["kind"] in wanted}


def _steady(value: Any) -> Any:
    match value:
        case dict():
            return {name: _steady(item) for name, item in sorted(value.items()) if name not in _UNSTEADY}
        case list():
            return [_steady(item) for item in value]
        case _:
            return value


def without_order(value: Any) -> Any:
    """The same with fields sorted by name: a server that got them one by one serves them in another order."""
    match value:
        case dict():
            return {name: without_order(item) for name, item in value.items()}
        case list() if all(isinstance(item, dict) and "name" in item for item in value):
            return [without_order(item) for item in sorted(value, key=lambda item: str(item["name"]))]
        case _:
            return value


def _client(url: str, token: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"X-INFRAHUB-KEY": token}, trust_env=False, timeout=_LOAD_SECONDS)
