"""Plan: source rows and a destination's objects to an artifact on disk, beside a bare diffsync diff of the same.

The objects are the device-type library several times over, each copy under names of its own. The destination has most
of them as wanted, some with another value, and lacks some. The bare diff reads the same two sides: rows decoded,
transformed and their mapped fields taken, objects as served, references through a dictionary, one DiffSyncModel class
for each kind with the mapping's identifiers and fields, and ``diff_from``. It checks no value and writes nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import structlog
import yaml
from diffsync import Adapter, DiffSyncModel

from ledger.binding import DestinationBinding
from ledger.destination import FieldSelection, ObservedObject, PeerPointer
from ledger.plan.reader import load_plan_artifact
from ledger.schema import DestinationSchema
from producers.config import LoadedConfiguration, load_configuration
from producers.mapping import MappingPlan, compile_mapping
from producers.planning import PlannedRun, PlanOptions, make_plan
from producers.source_side import value_or_absent
from producers.transforms import apply_transforms
from tests.bench.apart import imported, run_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved, ratio
from tests.support.fake_reader import DATA, real_schema

_LIBRARY = DATA / "devicetype-library" / "day1"
_CONFIGURATION = DATA / "configs" / "devicetype-library.config.yml"
_ROWS, _SIDE, _WORK = "rows", "destination", "work"
_NAMED = {"id", "name", "model", "slug"}
_CHANGED, _LACKING = 20, 21


def measure(setting: Setting) -> Sequence[Figure]:
    """Seconds of both and their ratio, and the peak memory of each."""
    copies, at_most = setting.sized(6, 1), setting.sized(1_000_000, 60)
    rows = run_apart(write_world, setting.scratch, copies, at_most)[0]
    peaks: dict[str, list[float]] = {"plan": [], "bare": []}

    def measured(name: str) -> float:
        (seconds, found), peak = run_apart(_WORKS[name], setting.scratch)
        if found != rows:
            raise RuntimeError(f"{name} saw {found} of {rows} objects")
        peaks[name].append(peak)
        return seconds

    seconds = interleaved(setting.rounds, {name: partial(measured, name) for name in _WORKS})
    _, alone = run_apart(imported)
    return [
        ratio(
            f"plan of {rows:,} rows ÷ bare diffsync diff of the same objects, both with loading",
            Series("make_plan: both sides read, artifact and snapshots on disk", "s", seconds["plan"]),
            Series("json.loads, DiffSyncModel, Adapter.add of both sides, diff_from", "s", seconds["bare"]),
            Target("at most", 1.5),
        ),
        Figure(
            "peak memory of a process that plans them",
            Series("peak memory", "MiB", tuple(peaks["plan"])),
            beside=(
                Series("of the bare diff", "MiB", tuple(peaks["bare"])),
                Series("the interpreter alone", "MiB", (alone,)),
            ),
        ),
    ]


# --- the world ------------------------------------------------------------------------------------------------------


def write_world(scratch: Path, copies: int, at_most: int) -> int:
    """Write the source rows, of at most so many device types a copy, and the destination's objects.

    Returns:
        The number of rows.
    """
    (scratch / _ROWS).mkdir()
    types = {row["id"] for row in _decoded(_LIBRARY / "dcim.device-types.jsonl")[:at_most]}
    total = 0
    for path in sorted(_LIBRARY.glob("*.jsonl")):
        rows = [row for row in _decoded(path) if row.get("device_type", {"id": None})["id"] in {None, *types}]
        if "device-types" in path.name:
            rows = [row for row in rows if row["id"] in types]
        with (scratch / _ROWS / path.name).open("w", encoding="utf-8") as file:
            for copy in range(copies):
                for row in rows:
                    file.write(json.dumps(_copied(row, copy), ensure_ascii=False) + "\n")
                    total += 1
    run = asyncio.run(_make(scratch, _FileDestination(scratch / "empty")))
    _write_destination(scratch / _SIDE, run)
    return total


def _decoded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def _copied(row: dict[str, Any], copy: int) -> dict[str, Any]:
    return {name: _renamed(name, value, copy) for name, value in row.items()} if copy else row


def _renamed(name: str, value: Any, copy: int) -> Any:
    if name in _NAMED and isinstance(value, str):
        return f"{value}-{copy}"
    if name in ("manufacturer", "device_type"):
        return {**value, "id": f"{value['id']}-{copy}"}
    return value


def _write_destination(folder: Path, run: PlannedRun) -> None:
    """The objects that applying the plan of an empty destination leaves, one in twenty otherwise or not at all."""
    folder.mkdir()
    files: dict[str, list[str]] = {}
    for number, operation in enumerate(load_plan_artifact(run.run_dir).operations):
        leaf = operation.kind.endswith("Template")
        if leaf and number % _LACKING == 0:
            continue
        payload = dict(operation.payload or {})
        if leaf and number % _CHANGED == 0:
            payload["label"] = "relabelled"
        one = {
            reference.field: [reference.peer_kind, _node_id(reference.peer_kind, reference.peers[0])]
            for reference in operation.relationships or ()
        }
        record = {"id": _node_id(operation.kind, operation.identity), "attributes": payload, "one": one}
        files.setdefault(operation.kind, []).append(json.dumps(record, ensure_ascii=False))
    for kind, lines in files.items():
        (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _node_id(kind: str, identity: Mapping[str, Any]) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([kind, identity], sort_keys=True)))


class _FileDestination:
    """A destination that is read from files, so that it takes no memory of the process that is measured."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._schema = real_schema()
        self.binding = DestinationBinding(url="http://infrahub.example:8000", branch="main")

    async def schema(self) -> DestinationSchema:
        return self._schema

    async def counts(self, kinds: Sequence[str]) -> Mapping[str, int]:
        return {kind: sum(1 for _ in self._lines(kind)) for kind in kinds}

    def _lines(self, kind: str) -> Iterator[str]:
        path = self._folder / f"{kind}.jsonl"
        if path.exists():
            with path.open(encoding="utf-8") as file:
                yield from file

    def objects(self, kind: str, fields: FieldSelection) -> Iterator[ObservedObject]:
        """All objects; an attribute that was never set has its default."""
        attributes = self._schema.kinds[kind].attributes
        for line in self._lines(kind):
            record = json.loads(line)
            given, one = record["attributes"], record["one"]
            yield ObservedObject(
                kind=kind,
                id=record["id"],
                attributes={name: given.get(name, attributes[name].default) for name in fields.attributes},
                one={name: PeerPointer(*one[name]) if name in one else None for name in fields.one},
                many=dict.fromkeys(fields.many, ()),
            )

    async def read(self, kind: str, fields: FieldSelection) -> AsyncIterator[ObservedObject]:
        for item in self.objects(kind, fields):
            yield item


# --- both ways ------------------------------------------------------------------------------------------------------


def plan_them(scratch: Path) -> tuple[float, int]:
    """Seconds of ``make_plan`` as a command calls it, and how many resources it accounts for."""
    _quiet()
    destination = _FileDestination(scratch / _SIDE)
    started = time.perf_counter()
    run = asyncio.run(_make(scratch, destination))
    return time.perf_counter() - started, sum(run.counts.values())


async def _make(scratch: Path, destination: _FileDestination) -> PlannedRun:
    return await make_plan(
        _configuration(scratch),
        destination,
        root=scratch / _WORK,
        options=PlanOptions(allow_rowcount_drop=True),
        clock=lambda: datetime.now(UTC),
        environ={},
    )


def _configuration(scratch: Path) -> LoadedConfiguration:
    document = yaml.safe_load(_CONFIGURATION.read_text(encoding="utf-8"))
    document["source"]["settings"]["directory"] = str(scratch / _ROWS)
    path = scratch / "library.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return load_configuration(path)


def diff_them(scratch: Path) -> tuple[float, int]:
    """Seconds of a bare diff of both sides, and how many objects it looked at."""
    _quiet()
    destination = _FileDestination(scratch / _SIDE)
    started = time.perf_counter()
    mapping = compile_mapping(_configuration(scratch).config, real_schema())
    models = {kind: _model(mapping, kind) for kind in mapping.kinds}
    wanted, observed = (type(name, (Adapter,), {**models, "top_level": list(models)})() for name in ("Wanted", "Seen"))
    rows: dict[str, str] = {}
    nodes: dict[str, str] = {}
    for kind, model in models.items():
        for row_id, fields in _source_fields(scratch, mapping, kind, rows):
            item = model(**fields)
            rows[row_id] = item.get_unique_id()
            wanted.add(item)
        for served in destination.objects(kind, mapping.selection(kind)):
            one = {name: None if pointer is None else nodes[pointer.id] for name, pointer in served.one.items()}
            item = model(**served.attributes, **one)
            nodes[served.id] = item.get_unique_id()
            observed.add(item)
    diff = observed.diff_from(wanted)
    return time.perf_counter() - started, len(list(diff.get_children()))


def _model(mapping: MappingPlan, kind: str) -> type[DiffSyncModel]:
    plan = mapping.kinds[kind]
    attributes = [name for name in plan.fields if name not in plan.identifiers]
    return type(
        kind,
        (DiffSyncModel,),
        {
            "__module__": __name__,
            "__annotations__": {**dict.fromkeys(plan.identifiers, str), **dict.fromkeys(attributes, Any)},
            **dict.fromkeys(attributes),
            "_modelname": kind,
            "_identifiers": plan.identifiers,
            "_attributes": tuple(attributes),
        },
    )


def _source_fields(
    scratch: Path, mapping: MappingPlan, kind: str, rows: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row's id and mapped fields; a reference is the unique id of the row that it names."""
    (entry,) = mapping.kinds[kind].entries
    known = mapping.schema.kinds[kind].attributes
    with (scratch / _ROWS / f"{entry.endpoint}.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            changed = apply_transforms(entry.transforms, row) if entry.transforms else row
            fields: dict[str, Any] = {}
            for plan in entry.fields:
                value = value_or_absent(changed, plan.path)
                if plan.reference is not None:
                    fields[plan.name] = rows[value["id"]]
                elif isinstance(value, str | int | float | bool):
                    fields[plan.name] = value
                else:
                    fields[plan.name] = known[plan.name].default
            yield row["id"], fields


def _quiet() -> None:
    """diffsync says on the terminal what it does; that is no part of either side's time."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))


_WORKS = {"plan": plan_them, "bare": diff_them}

CASE = Case(
    "plan-rows",
    "105,000 rows against a destination of which nine in ten agree: a plan on disk ÷ a bare diffsync diff of them",
    measure,
)
