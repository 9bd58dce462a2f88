"""Plans for the campaign: slices of what the plan maker makes of the two real inventories.

Once for each sandbox: some rows of both inventories, an older state of them written to its main branch, a few objects
changed by another hand, and then one plan of each source against that. Every branch of an episode is forked from main,
so the plans fit every branch; each run gets a slice of one, closed under its references, with texts of its own, so that
it can be told who wrote last.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from consumers.infrahub.connection import open_reader
from consumers.infrahub.sandbox import RunningSandbox
from consumers.infrahub.settings import InfrahubSettings
from ledger.binding import DestinationBinding
from ledger.destination import PlannedWriteDestination
from ledger.plan.canonical import object_key
from ledger.plan.model import PlannedOperation
from ledger.plan.reader import load_plan_artifact
from producers.config import LoadedConfiguration
from producers.planning import PlanOptions, make_plan
from tests.support.fake_reader import DATA, real_schema
from tests.support.planning import CLOCK, LIBRARY, NETBOX, edited
from tests.support.real_writer import TOKEN, opener_for

Operations = Sequence[PlannedOperation]
_NETBOX_KINDS = [
    "OrganizationTenant",
    "OrganizationManufacturer",
    "OrganizationRIR",
    "LocationRegion",
    "IpamASN",
    "LocationSite",
    "LocationRow",
    "DcimRackRole",
    "LocationRack",
    "DcimDeviceRole",
    "DcimDeviceType",
    "DcimInterfaceTemplate",
]
_LIBRARY_KINDS = [
    "OrganizationManufacturer",
    "DcimDeviceType",
    "DcimInterfaceTemplate",
    "DcimConsolePortTemplate",
    "DcimPowerPortTemplate",
]
_LIBRARY_MAKERS = frozenset({"Ruckus", "Supermicro", "Apple", "Barracuda", "Check Point", "Corning", "Netgate"})
_PORTS_OF_A_TYPE = 4
_SECONDS = 30.0


@dataclass(frozen=True)
class Pool:
    """One whole plan of each source, made against the main branch of one sandbox."""

    plans: Mapping[str, tuple[PlannedOperation, ...]]


class _SetupNeedsNoLease:
    async def ready(self) -> None:
        """Go."""

    def before_send(self, *, write: bool = True) -> None:
        """The main branch is written before any binding exists."""


async def prepare(sandbox: RunningSandbox, folder: Path, seed: str) -> Pool:
    """Fill the main branch and plan both sources against it."""
    rng = random.Random(f"pool {seed}")
    day0, day1, library = _netbox(folder / "day0", "day0"), _netbox(folder / "day1", "day1"), _library(folder / "types")
    earlier = [*await _plan(sandbox, day0, folder), *await _plan(sandbox, library, folder)]
    await _write(sandbox, _closed(rng.sample(earlier, len(earlier) // 3), earlier))
    _change_some(sandbox, rng)
    options = {"allow_rowcount_drop": True}
    return Pool(
        {loaded.config.name: tuple(await _plan(sandbox, loaded, folder, **options)) for loaded in (day1, library)}
    )


def slice_of(
    operations: Operations, rng: random.Random, *, size: int, text: str, without: set[bytes]
) -> list[PlannedOperation]:
    """About ``size`` operations of a plan, every shape that it has among them, closed under references, in its order.

    ``without`` are objects that no operation may create: a kind keyed by a constraint alone is created once.
    """
    allowed = [o for o in operations if o.action != "create" or key_of(o) not in without]
    by_shape: dict[tuple[str, str], list[PlannedOperation]] = {}
    for operation in allowed:
        by_shape.setdefault((operation.action, operation.kind), []).append(operation)
    shapes = sorted(by_shape)
    rng.shuffle(shapes)
    chosen: list[PlannedOperation] = []
    while len(chosen) < size:
        for shape in shapes:
            if len(chosen) < size:
                chosen = _closed([*chosen, rng.choice(by_shape[shape])], allowed)
    return [_with_text(operation, text) for operation in chosen]


def key_of(operation: PlannedOperation) -> bytes:
    """What names the object of an operation."""
    return object_key(operation.kind, operation.identity)


def keyed_by_constraint_alone(operation: PlannedOperation) -> bool:
    """Whether a create of this goes out under an id of ours."""
    return operation.action == "create" and real_schema().kinds[operation.kind].keyed_by_constraint_alone


def _with_text(operation: PlannedOperation, text: str) -> PlannedOperation:
    takes_text = "description" in real_schema().kinds[operation.kind].attributes
    if operation.payload is None or not takes_text:
        return operation
    return operation.model_copy(update={"payload": {**operation.payload, "description": text}})


def _closed(chosen: Iterable[PlannedOperation], operations: Operations) -> list[PlannedOperation]:
    """With the creates of everything that is referred to, in stored order."""
    creates = {key_of(operation): operation for operation in operations if operation.action == "create"}
    wanted: dict[str, PlannedOperation] = {}
    left = list(chosen)
    while left:
        operation = left.pop()
        if operation.operation_id not in wanted:
            wanted[operation.operation_id] = operation
            left += [creates[key] for key in _referred(operation) if key in creates]
    return sorted(wanted.values(), key=lambda operation: (operation.tier, operation.operation_id))


def _referred(operation: PlannedOperation) -> list[bytes]:
    return [
        object_key(reference.peer_kind, peer) for reference in operation.relationships or () for peer in reference.peers
    ]


async def _plan(
    sandbox: RunningSandbox, loaded: LoadedConfiguration, folder: Path, **options: Any
) -> tuple[PlannedOperation, ...]:
    settings = InfrahubSettings(url=sandbox.url, branch="main", token=TOKEN, read_timeout=_SECONDS, page_size=1000)
    async with open_reader(settings) as reader:
        run = await make_plan(
            loaded, reader, root=folder / "planned", options=PlanOptions(**options), clock=CLOCK, environ={}
        )
    return tuple(load_plan_artifact(run.run_dir).operations)


async def _write(sandbox: RunningSandbox, operations: Operations) -> None:
    binding = DestinationBinding(url=sandbox.url, branch="main")
    opening = opener_for(sandbox.url, "main", TOKEN, _SECONDS)(binding, run_id="setup", guard=_SetupNeedsNoLease())
    async with opening as opened:
        writes = opened.writes
        if not isinstance(writes, PlannedWriteDestination):
            raise TypeError("the sandbox is no destination")
        peers = writes.new_peer_resolver()
        for operation in operations:
            await writes.apply_planned_operation(operation=operation, peers=peers)


def _change_some(sandbox: RunningSandbox, rng: random.Random) -> None:
    """What somebody else did at the destination since: these become updates."""
    nodes = sandbox.store.default_branch.nodes
    named = [node_id for node_id, node in nodes.items() if "description" in node.kind.attributes]
    for node_id in rng.sample(named, len(named) // 2):
        sandbox.store.update(node_id, {"description": "changed by another hand"})


def _netbox(folder: Path, day: str) -> LoadedConfiguration:
    rows = _rows(f"netbox-demo-data/{day}")
    rows["dcim.interface-templates"] = _some_of_each(rows["dcim.interface-templates"])
    return _cut(NETBOX, folder, rows, _NETBOX_KINDS)


def _library(folder: Path) -> LoadedConfiguration:
    rows = _rows("devicetype-library/day1")
    shared = {
        (row["manufacturer"]["name"], row["model"]) for row in _rows("netbox-demo-data/day1")["dcim.device-types"]
    }
    types = [
        row
        for row in rows["dcim.device-types"]
        if row["manufacturer"]["name"] in _LIBRARY_MAKERS or (row["manufacturer"]["name"], row["model"]) in shared
    ]
    makers, ids = {row["manufacturer"]["name"] for row in types}, {row["id"] for row in types}
    cut = {"dcim.device-types": types}
    cut["dcim.manufacturers"] = [row for row in rows["dcim.manufacturers"] if row["name"] in makers]
    for endpoint in ("interface", "console-port", "power-port"):
        name = f"dcim.{endpoint}-templates"
        cut[name] = _some_of_each([row for row in rows[name] if row["device_type"]["id"] in ids])
    return _cut(LIBRARY, folder, cut, _LIBRARY_KINDS)


def _rows(directory: str) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (DATA / directory).glob("*.jsonl")
    }


def _some_of_each(ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kept: dict[Any, int] = {}
    some = []
    for port in ports:
        owner = port["device_type"]["id"]
        kept[owner] = kept.get(owner, 0) + 1
        if kept[owner] <= _PORTS_OF_A_TYPE:
            some.append(port)
    return some


def _cut(
    config: Path, folder: Path, rows: dict[str, list[dict[str, Any]]], kinds: Sequence[str]
) -> LoadedConfiguration:
    """The real configuration, of these kinds only, over these rows."""
    folder.mkdir(parents=True)
    for endpoint, items in rows.items():
        lines = [json.dumps(item, ensure_ascii=False) for item in items]
        (folder / f"{endpoint}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def edit(document: dict[str, Any]) -> None:
        document["schema_mapping"] = [entry for entry in document["schema_mapping"] if entry["name"] in kinds]
        document["source"]["settings"]["directory"] = str(folder)
        for entry in document["schema_mapping"]:
            entry["fields"] = [field for field in entry["fields"] if field.get("reference", kinds[0]) in kinds]

    return edited(config, folder, edit)
