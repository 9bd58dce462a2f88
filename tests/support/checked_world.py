"""A small sound world for the campaign's checker: one run, one death, one take-over. Tests doctor it."""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from tests.faults.checker import chain_hash
from tests.faults.facts import Facts, Freeze, Node, PlannedRun, Request

RUN = "run-1"
TEXT = {"value": "of run 1"}
MAKER, TYPE, PORT = "OrganizationManufacturer", "DcimDeviceType", "DcimInterfaceTemplate"


def _lines() -> list[dict[str, Any]]:
    """An update, a create, a recorded delete, and a create of a kind that is keyed by a constraint alone."""
    type_key = {"peer_kind": TYPE, "identity": {"name": "T"}}
    return [
        {"operation_id": "op_0", "action": "update", "kind": MAKER, "identity": {"name": "Old"}, "tier": 0}
        | {"payload": {"name": "Old", "description": "of run 1"}, "destination_id": "old"},
        {"operation_id": "op_1", "action": "create", "kind": TYPE, "identity": {"name": "T"}, "tier": 1}
        | {"payload": {"name": "T", "description": "of run 1"}}
        | {"relationships": [{"field": "manufacturer", "peer_kind": MAKER, "peers": [{"name": "Old"}]}]},
        {"operation_id": "op_2", "action": "delete", "kind": MAKER, "identity": {"name": "Gone"}, "tier": 2},
        {"operation_id": "op_3", "action": "create", "kind": PORT, "tier": 3, "payload": {"name": "P"}}
        | {"identity": {"name": "P", "device_type": type_key}}
        | {"relationships": [{"field": "device_type", "peer_kind": TYPE, "peers": [{"name": "T"}]}]},
    ]


@dataclass
class World:
    """Mutable, until :meth:`facts` makes a chain of its events. Moments are seconds; one event a second."""

    lines: list[dict[str, Any]] = field(default_factory=_lines)
    events: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    before: dict[str, Node] = field(default_factory=dict)
    after: dict[str, Node] = field(default_factory=dict)
    inbox: list[dict[str, Any]] = field(default_factory=list)
    stored: bytes | None = None
    head: int | None = None
    seen: list[tuple[int, str]] = field(default_factory=list)
    freezes: list[Freeze] = field(default_factory=list)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    in_flight: str | None = None
    doomed: str | None = None

    def event(self, kind: str, epoch: int | None = None, place: int | None = None, **more: Any) -> dict[str, Any]:
        """Append an event; outcomes name their ordinal as ``place`` and their ``attempt``."""
        attempt = more.pop("attempt", 1)
        event = {
            "kind": kind,
            "writer_epoch": epoch,
            "run_id": None if kind == "writer.opened" else RUN,
            "operation_id": None if place is None else f"op_{place}",
            "ordinal": place,
            "attempt": None if place is None else attempt,
            "body": more,
        }
        self.events.append(event)
        return event

    def request(self, place: int, sent: dict[str, Any], at: float, **more: Any) -> Request:
        """Append a mutation that arrived at a moment; written a tenth of a second later unless told otherwise."""
        values: dict[str, Any] = {
            "sent": sent,
            "kind": self.lines[place]["kind"],
            "form": "Upsert",
            "received_at": at,
            "decided_at": at + 0.1,
            "written": True,
            "node_id": sent.get("id"),
            "shed": False,
            "writer": "first",
            "epoch": 1,
            "guarded_at": at - 0.01,
            "place": (RUN, place),
            "attempt": 1,
        }
        self.requests.append(Request(**(values | more)))
        return self.requests[-1]

    def facts(self) -> Facts:
        """Everything, with a chain that holds."""
        operations = b"".join(json.dumps(line).encode() + b"\n" for line in self.lines)
        binding: dict[str, Any] = {"url": "http://infrahub.example:8000", "branch": "main"}
        run = PlannedRun(RUN, b"manifest", operations, self.doomed)
        stored = operations if self.stored is None else self.stored
        events, before = [], bytes(32)
        for number, event in enumerate(self.events, start=1):
            complete = {
                **event,
                "position": number,
                "event_id": uuid.UUID(int=number),
                "schema_version": 1,
                "microseconds": number * 10**6,
                "at": float(number),
                "body": json.dumps(event["body"]),
                "prev_hash": before,
            }
            before = complete["hash"] = chain_hash(binding, complete)
            events.append(complete)
        binding |= {"head_position": len(events) if self.head is None else self.head, "head_hash": before}
        digest = hashlib.sha256(b"manifest" + operations).digest()
        return Facts(
            binding=binding | {"in_flight_run": self.in_flight},
            events=events,
            inbox=self.inbox,
            artifacts=[{"run_id": RUN, "plan_checksum": b"c", "manifest": b"manifest", "artifact_digest": digest}],
            lines=[{"plan_checksum": b"c", "line": line.decode() + "\n"} for line in stored.split(b"\n")[:-1]],
            runs={RUN: run},
            requests=self.requests,
            before=self.before,
            after=self.after,
            seen=self.seen,
            freezes=self.freezes,
            receipts=self.receipts,
        )


def sound_world() -> World:
    """Epoch 1 applies the update and dies in the create of the type; epoch 2 says so, repeats it, and ends the run."""
    world = World()
    world.inbox.append({"kind": "commit", "run_id": RUN, "inbox_id": 1, "state": "done"})
    world.before = {"old": Node(MAKER, {"name": "Old", "description": None}, {})}
    world.after = {
        "old": Node(MAKER, {"name": "Old", "description": "of run 1"}, {}),
        "type": Node(TYPE, {"name": "T", "description": "of run 1"}, {"manufacturer": ("old",)}),
        "port": Node(PORT, {"name": "P"}, {"device_type": ("type",)}),
    }
    type_sent = {"name": {"value": "T"}, "description": TEXT, "manufacturer": {"id": "old"}}
    world.event("plan.committed")
    world.event("writer.opened", 1)
    world.event("run.started", 1)
    world.request(0, {"id": "old", "name": {"value": "Old"}, "description": TEXT}, 3.2)
    world.event("operation.applied", 1, 0, node_id="old")
    world.request(1, type_sent, 4.2, node_id="type")
    world.event("writer.opened", 2)
    world.event("operation.unknown", 2, 1, error="WriterDiedError", wrote=None, sent=True)
    ended: dict[str, Any] = {"applied": 1, "skipped": 0, "not_attempted": 2, "failed_operation": "op_1"}
    world.event("run.interrupted", 2, **ended)
    world.event("run.resumed", 2)
    second: dict[str, Any] = {"epoch": 2, "writer": "second"}
    world.request(1, type_sent, 8.2, node_id="type", attempt=2, **second)
    world.event("operation.applied", 2, 1, attempt=2, node_id="type")
    world.event("operation.skipped", 2, 2)
    port = {"id": "port", "name": {"value": "P"}, "device_type": {"id": "type"}}
    world.request(3, port, 10.2, form="Create", node_id="port", **second)
    world.event("operation.applied", 2, 3, node_id="port")
    world.event("run.applied", 2, applied=3, skipped=1, not_attempted=0, failed_operation=None)
    return world
