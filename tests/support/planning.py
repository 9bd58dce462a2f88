"""Plans with the real data and with small configurations, against a destination in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from ledger.plan.model import PlannedOperation
from ledger.plan.reader import load_plan_artifact
from producers.config import LoadedConfiguration, load_configuration
from producers.planning import PlannedRun, PlanOptions, make_plan
from tests.support.fake_reader import DATA, FakeDestination

Rows = dict[str, list[dict[str, Any]]]
"""Source rows by endpoint."""

NETBOX = DATA / "configs" / "netbox-demo.config.yml"
LIBRARY = DATA / "configs" / "devicetype-library.config.yml"


class SteppingClock:
    """Each call is one second later, so that two runs differ in every time that they record."""

    def __init__(self) -> None:
        self._now = datetime(2026, 7, 26, 18, 4, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


CLOCK = SteppingClock()


async def plan(loaded: LoadedConfiguration, destination: FakeDestination, root: Path, **options: Any) -> PlannedRun:
    """Make a plan with these options."""
    return await make_plan(loaded, destination, root=root, options=PlanOptions(**options), clock=CLOCK, environ={})


def netbox(day: str = "day0") -> LoadedConfiguration:
    """The configuration of the NetBox demo data on one of its two days."""
    return load_configuration(NETBOX, source_settings={"directory": f"../netbox-demo-data/{day}"})


def library() -> LoadedConfiguration:
    """The configuration of the device-type library."""
    return load_configuration(LIBRARY)


def edited(
    path: Path, folder: Path, edit: Callable[[dict[str, Any]], None], *, day: str = "day0"
) -> LoadedConfiguration:
    """A copy of a real configuration with a change, beside which the real data still lies."""
    document = yaml.safe_load(path.read_text())
    # each entry of its own: YAML anchors make several share one list
    document["schema_mapping"] = json.loads(json.dumps(document["schema_mapping"]))
    directory = "devicetype-library/day1" if path == LIBRARY else f"netbox-demo-data/{day}"
    document["source"]["settings"]["directory"] = str(DATA / directory)
    edit(document)
    copy = folder / path.name
    copy.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
    return load_configuration(copy)


def entries(document: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    """The mapping entries of a kind in a configuration document."""
    return [entry for entry in document["schema_mapping"] if entry["name"] == kind]


def operations(run: PlannedRun) -> tuple[PlannedOperation, ...]:
    """The operations of a plan as stored."""
    return tuple(load_plan_artifact(run.run_dir).operations)


def small(
    folder: Path,
    rows: Mapping[str, Sequence[Mapping[str, Any]]],
    mapping: Sequence[Mapping[str, Any]],
    *,
    name: str = "small",
    **keys: Any,
) -> LoadedConfiguration:
    """A configuration of one's own: rows per endpoint and mapping entries."""
    data = folder / "rows"
    data.mkdir(parents=True, exist_ok=True)
    for endpoint, items in rows.items():
        lines = [json.dumps(item, ensure_ascii=False) for item in items]
        (data / f"{endpoint}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    document = {
        "name": name,
        "source": {"name": "jsonl", "settings": {"directory": "rows"}},
        "destination": {"name": "infrahub", "settings": {"url": "http://infrahub.example:8000"}},
        "schema_mapping": list(mapping),
        **keys,
    }
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return load_configuration(path)


def entry(
    kind: str, endpoint: str, identifiers: Sequence[str], *fields: Mapping[str, Any], **keys: Any
) -> dict[str, Any]:
    """One mapping entry."""
    return {"name": kind, "mapping": endpoint, "identifiers": list(identifiers), "fields": list(fields), **keys}


def mapped(name: str, path: str | None = None, reference: str | None = None) -> dict[str, Any]:
    """One field with a mapping."""
    field = {"name": name, "mapping": path or name}
    return field if reference is None else {**field, "reference": reference}
