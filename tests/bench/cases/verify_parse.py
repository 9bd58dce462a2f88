"""Verify and parse: everything between a plan's files and operations that may be applied, beside hash and decode."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from ledger.plan.canonical import canonical_json_bytes, operation_id
from ledger.plan.checksum import plan_checksum
from ledger.plan.layout import MANIFEST_FILE, OPERATIONS_FILE, PLAN_DIRECTORY
from ledger.plan.reader import parse_artifact, read_raw_artifact, require_applicable
from ledger.plan.verify import verify_plan
from tests.bench.apart import imported, run_apart
from tests.bench.frame import Case, Figure, Series, Setting, Target, interleaved, ratio

_RUN_ID = "20261130T120000-00000001"
_CONFIG_VERSION = "bench"
_PORTS = 48


def measure(setting: Setting) -> Sequence[Figure]:
    """Seconds of both and their ratio, and the peak memory of a process that does nothing else."""
    count = setting.sized(1_000_000, 2_000)
    run_apart(write_plan, setting.scratch, count)
    run_dir = setting.scratch / _RUN_ID
    peaks: list[float] = []

    def strict() -> float:
        seconds, peak = run_apart(verify_and_parse, run_dir, count)
        peaks.append(peak)
        return seconds

    seconds = interleaved(
        setting.rounds, {"strict": strict, "floor": lambda: run_apart(hash_and_decode, run_dir / OPERATIONS_FILE)[0]}
    )
    _, bare = run_apart(imported)
    return [
        ratio(
            f"verify and parse of {count:,} operations ÷ sha256 and json.loads of the same lines",
            Series("read_raw_artifact, verify_plan, parse_artifact, require_applicable", "s", seconds["strict"]),
            Series("one sha256 and json.loads of each line, values dropped", "s", seconds["floor"]),
            Target("at most", 4.0),
        ),
        Figure(
            "peak memory of a process that verifies and parses it",
            Series("peak memory", "MiB", tuple(peaks)),
            Target("at most", 300.0),
            beside=(Series("the interpreter alone", "MiB", (bare,)),),
        ),
    ]


def write_plan(root: Path, count: int) -> None:
    """A plan of devices and their interfaces in two tiers, as a plan maker elsewhere would write it."""
    lines = sorted(_line(number) for number in range(count))
    folder = root / _RUN_ID / PLAN_DIRECTORY
    folder.mkdir(parents=True)
    data = b"".join(line for _, _, line in lines)
    (root / _RUN_ID / OPERATIONS_FILE).write_bytes(data)
    document = {
        "format_version": 3,
        "run_id": _RUN_ID,
        "created_at": "2026-11-30T12:00:00+00:00",
        "config_version": _CONFIG_VERSION,
        "source_snapshot": [],
        "operations_count": count,
        "delete_operations_computed": False,
    }
    document["plan_checksum"] = plan_checksum(document, data)
    (root / _RUN_ID / MANIFEST_FILE).write_bytes(canonical_json_bytes(document))


def _line(number: int) -> tuple[int, str, bytes]:
    device = {"name": f"switch-{number // _PORTS:06}"}
    payload = {"description": "uplink, port 3", "enabled": True, "mtu": 9000, "name": f"Ethernet{number % _PORTS}"}
    identity = {"device": {"identity": device, "peer_kind": "DcimDevice"}, "name": payload["name"]}
    record = {
        "action": "create",
        "identity": identity,
        "kind": "DcimInterface",
        "operation_id": operation_id("create", "DcimInterface", identity),
        "payload": payload,
        "relationships": [{"cardinality": "one", "field": "device", "peer_kind": "DcimDevice", "peers": [device]}],
        "tier": 1 + number % 2,
    }
    return 1 + number % 2, str(record["operation_id"]), canonical_json_bytes(record) + b"\n"


def verify_and_parse(run_dir: Path, count: int) -> float:
    """Seconds from the files to operations that may be applied."""
    started = time.perf_counter()
    raw = read_raw_artifact(run_dir)
    failures = verify_plan(artifact=raw, run_id=_RUN_ID, config_version=_CONFIG_VERSION)
    artifact = parse_artifact(raw)
    require_applicable(artifact)
    seconds = time.perf_counter() - started
    if failures or len(artifact.operations) != count:
        raise RuntimeError("the bench's own plan was refused")
    return seconds


def hash_and_decode(path: Path) -> float:
    """Seconds of the least that any reader does with these bytes; nothing is kept."""
    started = time.perf_counter()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for line in file:
            digest.update(line)
            json.loads(line)
    return time.perf_counter() - started


CASE = Case(
    "verify-parse",
    "a plan of one million operations, from the files on: strict reading ÷ sha256 and json.loads of the same bytes",
    measure,
)
