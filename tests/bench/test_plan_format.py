"""What strict reading of a plan costs beside its floor: one sha256 and one plain decoding of the same bytes."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable

import pytest

from ledger.plan.canonical import canonical_json_bytes, operation_id
from ledger.plan.operations import parse_operations

OPERATIONS = 5_000


def _plan() -> bytes:
    lines = []
    for number in range(OPERATIONS):
        device = {"name": f"sw{number // 48}"}
        identity = {"device": {"identity": device, "peer_kind": "DcimDevice"}, "name": f"Ethernet{number}"}
        record = {
            "action": "create", "identity": identity, "kind": "DcimInterface", "tier": 1,
            "operation_id": operation_id("create", "DcimInterface", identity),
            "payload": {"name": f"Ethernet{number}", "description": "uplink, port 3", "mtu": 9000, "enabled": True},
            "relationships": [
                {"cardinality": "one", "field": "device", "peer_kind": "DcimDevice", "peers": [device]}],
        }  # fmt: skip
        lines.append((record["operation_id"], canonical_json_bytes(record) + b"\n"))
    return b"".join(line for _, line in sorted(lines, key=lambda pair: str(pair[0])))


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


@pytest.mark.bench
def test_strict_reading_beside_its_floor(record_property: Callable[[str, object], None]) -> None:
    data = _plan()

    floor = min(
        _seconds(lambda: (hashlib.sha256(data), [json.loads(line) for line in data.split(b"\n")[:-1]]))
        for _ in range(3)
    )
    strict = min(_seconds(lambda: parse_operations(data, format_version=3)) for _ in range(3))
    record_property("floor_us_per_operation", round(floor / OPERATIONS * 1e6, 1))
    record_property("strict_us_per_operation", round(strict / OPERATIONS * 1e6, 1))
    print(f"floor {floor / OPERATIONS * 1e6:.1f} us, strict {strict / OPERATIONS * 1e6:.1f} us, {strict / floor:.1f}x")
