"""What the write surface stands on: neutral types of ours on one side, the public part of the SDK on the other."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import consumers.infrahub
from consumers.infrahub.peers import InfrahubPeerResolver
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger import destination
from ledger.destination import PeerResolver, PlannedWriteDestination
from tests.support.operations import create, one
from tests.support.scripted_infrahub import ScriptedInfrahub, applied, found, open_surface

MODULES = sorted(Path(consumers.infrahub.__file__).parent.glob("*.py"))


class DictionaryResolver:
    """A resolver that knows nothing of Infrahub."""

    def __init__(self, known: dict[str, str]) -> None:
        self.known = known
        self.asked: list[tuple[str, str]] = []

    async def resolve(self, *, peer_kind: str, identity: Mapping[str, Any], referring_operation_id: str) -> str:
        self.asked.append((peer_kind, referring_operation_id))
        return self.known[str(identity["name"])]

    def remember(self, kind: str, identity: Mapping[str, Any], node_id: str) -> None:
        self.known[str(identity["name"])] = node_id


@pytest.mark.rules("P9", "P10", "P76")
async def test_the_surface_takes_any_resolver() -> None:
    server, resolver = ScriptedInfrahub(), DictionaryResolver({"dc1": "s-1"})
    server.will_answer(applied("LabDeviceUpsert", "d-1"))
    operation = create("LabDevice", {"name": "sw1"}, {"name": "sw1"}, one("site", "LabSite", name="dc1"))
    async with open_surface(server) as surface:
        await surface.apply_planned_operation(operation=operation, peers=resolver)
    assert resolver.asked == [("LabSite", operation.operation_id)]
    assert resolver.known["sw1"] == "d-1"


@pytest.mark.rules("P9", "P10")
def test_the_protocol_names_nothing_of_infrahub() -> None:
    names = {node.id for node in ast.walk(ast.parse(inspect.getsource(destination))) if isinstance(node, ast.Name)}
    assert not {name for name in names if "infrahub" in name.lower()}


@pytest.mark.rules("P15", "P6", "P7", "P68")
@pytest.mark.parametrize(
    ("declared", "implemented", "members"),
    [
        (PlannedWriteDestination, InfrahubWriteSurface, ("apply_planned_operation",)),
        (PeerResolver, InfrahubPeerResolver, ("resolve", "remember")),
    ],
)
def test_implementations_have_the_declared_signatures(
    declared: type, implemented: type, members: tuple[str, ...]
) -> None:
    for name in members:
        assert inspect.signature(getattr(implemented, name)) == inspect.signature(getattr(declared, name))


@pytest.mark.rules("P2", "P3", "P18")
async def test_writing_reads_the_schema_and_missing_peers_and_nothing_else() -> None:
    server = ScriptedInfrahub()
    server.will_answer(found("LabSite", {"id": "s-1", "name": {"value": "dc1"}}), applied("LabDeviceUpsert", "d-1"))
    async with open_surface(server) as surface:
        operation = create("LabDevice", {"name": "sw1"}, {"name": "sw1"}, one("site", "LabSite", name="dc1"))
        await surface.apply_planned_operation(operation=operation, peers=surface.new_peer_resolver())
    assert [request.url.path for request in server.requests] == ["/api/schema", "/graphql/lab1", "/graphql/lab1"]
    look_up, write = server.sent
    assert "limit: 2)" in look_up["query"]
    assert write["query"].startswith("mutation")


@pytest.mark.rules("P23", "P33", "P35", "P64", "P74")
@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_module_uses_the_sdks_private_side_its_writes_or_its_store(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            private = node.attr.startswith("_") and not node.attr.endswith("__")
            assert own or not private, f"line {node.lineno}: {node.attr}"
            of_sandbox = isinstance(node.value, ast.Name) and node.value.id == "sandbox"  # no client of the SDK
            sdks = ("save", "store", "generate_payload_create", "hfid")
            assert of_sandbox or node.attr not in sdks, f"line {node.lineno}: {node.attr}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("infrahub_sdk"):
            assert not any(alias.name.startswith("_") for alias in node.names)


def test_every_module_was_looked_at() -> None:
    assert {"write_surface", "peers", "transport", "reader"} <= {path.stem for path in MODULES}
