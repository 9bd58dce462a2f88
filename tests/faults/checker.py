"""Whether the guarantees held, from raw facts alone: no projection, no audit, no model of the service is used.

Each check is a generator of violations, named by the guarantee; :func:`violations` runs them all. The chain is computed
anew from its description (design 6). What is compared here is what people rely on, so a check that cannot be made (an
unnamed request, a line that is missing) is a violation too.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.faults.end_state import end_state_violations
from tests.faults.facts import Facts, Freeze, Request, Row

Violations = Iterator["Violation"]
_SUCCESS = frozenset({"operation.applied", "operation.skipped"})
_ENDS = frozenset({"run.applied", "run.failed", "run.interrupted", "run.stopped", "plan.refused"})
_HASHED = {
    "position": 8,
    "event_id": None,
    "kind": None,
    "schema_version": 4,
    "writer_epoch": 8,
    "run_id": None,
    "operation_id": None,
    "ordinal": 8,
    "attempt": 4,
    "microseconds": 8,
    "body": None,
}
"""The fields of an event in the order in which they are hashed; numbers with their length in bytes."""

_CLOCK = 0.05
"""Seconds between the moment that a signal was sent and the one at which the process stood still, or went on."""


@dataclass(frozen=True)
class Violation:
    """A guarantee that did not hold, and where."""

    guarantee: str
    found: str

    def __str__(self) -> str:
        return f"{self.guarantee}: {self.found}"


def violations(facts: Facts) -> list[Violation]:
    """Everything that does not hold."""
    found = [violation for check in CHECKS for violation in check(facts)]
    return found + [Violation("end state", text) for text in end_state_violations(facts, strays(facts))]


def g1_reviewed_is_applied(facts: Facts) -> Violations:
    """The stored lines and manifest are the files' bytes, and what was sent is what the line says."""
    for artifact in facts.artifacts:
        run = facts.runs.get(artifact["run_id"])
        if run is None:
            yield Violation("G1", f"an artifact of the unknown run {artifact['run_id']}")
            continue
        stored = "".join(r["line"] for r in facts.lines if r["plan_checksum"] == artifact["plan_checksum"]).encode()
        if stored != run.operations:
            yield Violation("G1", f"run {run.run_id}: the stored lines are not the artifact's")
        if artifact["manifest"] != run.manifest:
            yield Violation("G1", f"run {run.run_id}: the stored manifest is not the artifact's")
        if artifact["artifact_digest"] != hashlib.sha256(run.manifest + run.operations).digest():
            yield Violation("G1", f"run {run.run_id}: the stored digest is not of the artifact's bytes")
    started = {event["run_id"] for event in facts.events if event["kind"] == "run.started"}
    for run_id in started - {artifact["run_id"] for artifact in facts.artifacts}:
        yield Violation("G1", f"run {run_id} started without a stored artifact")
    for request in facts.requests:
        if (wrong := _differs(facts, request)) is not None:
            yield Violation("G1", f"{request.place} attempt {request.attempt} was sent with another {wrong}")


def _differs(facts: Facts, request: Request) -> str | None:
    line, sent = facts.operation(request.place), dict(request.sent)
    if not line:
        return "place than any operation has"
    node_id = sent.pop("id", None)
    if line["action"] == "delete" or request.kind != line["kind"]:
        return "kind or action"
    if line["action"] == "update" and (node_id, request.form) != (line["destination_id"], "Upsert"):
        return "id"
    if line["action"] == "create" and (node_id is None) is not (request.form == "Upsert"):
        return "form"
    expected: dict[str, Any] = {name: {"value": value} for name, value in line["payload"].items()}
    for reference in line.get("relationships", ()):
        peers = sent.get(reference["field"])
        ids = [peer["id"] for peer in (peers if isinstance(peers, list) else [peers] if peers else [])]
        if len(ids) != len(reference["peers"]):
            return f"number of peers under {reference['field']}"
        expected[reference["field"]] = peers
    without_nulls = {name: value for name, value in expected.items() if name in sent or value != {"value": None}}
    return None if sent == without_nulls else "value"


def g2_one_writer(facts: Facts) -> Violations:
    """Epochs in the log never go back, nor do those at the destination, and no two requests are under way at once."""
    epoch, opened = 0, {}
    for event in facts.events:
        if event["kind"] == "writer.opened":
            if event["writer_epoch"] != epoch + 1:
                yield Violation("G2", f"position {event['position']}: epoch {event['writer_epoch']} after {epoch}")
            epoch = event["writer_epoch"]
            opened[epoch] = event["at"]
        elif event["writer_epoch"] not in (None, epoch):
            yield Violation("G2", f"position {event['position']}: epoch {event['writer_epoch']} under {epoch}")
    allowed = {id(request) for request in strays(facts)}
    for request in facts.requests:
        if request.epoch not in opened:
            yield Violation("G2", f"{request.place}: sent under the epoch {request.epoch}, which nobody opened")
        elif id(request) not in allowed and request.received_at > opened.get(request.epoch + 1, float("inf")):
            yield Violation("G2", f"{request.place}: sent by {request.writer} after epoch {request.epoch + 1} began")
    yield from _overlaps(facts, allowed)


def _overlaps(facts: Facts, allowed: set[int]) -> Violations:
    """A request that came while another one could still write (design 7.2)."""
    last: Request | None = None
    end = 0.0
    for request in facts.requests:
        if request.shed or id(request) in allowed:
            continue
        if last is not None and request.received_at < end:
            yield Violation("G2", f"{request.place} came {end - request.received_at:.3f} s before {last.place} ended")
        last, end = request, max(end, _end(facts, request))


def _end(facts: Facts, request: Request) -> float:
    if request.decided_at is not None:
        return request.decided_at
    return min((stop for stop in facts.stops if stop >= request.received_at), default=float("inf"))


def strays(facts: Facts) -> list[Request]:
    """The one request that no fence stops: its writer stood still between the last check and the socket (README).

    It stood still by SIGSTOP, one request for each time; or the machine was so slow that the request was longer on its
    way than it may last (see :func:`starved`).
    """
    found: dict[Freeze, Request] = {}
    for request in _late(facts):
        for freeze in facts.freezes:
            checked_before = request.guarded_at <= freeze.since + _CLOCK
            sent_after = request.received_at >= freeze.until - _CLOCK
            if freeze.writer == request.writer and checked_before and sent_after:
                found.setdefault(freeze, request)
    return [*found.values(), *starved(facts)]


def starved(facts: Facts) -> list[Request]:
    """Late requests that were longer on their way than one may last, though nobody froze their writer meanwhile."""
    return [
        request
        for request in _late(facts)
        if request.received_at - request.guarded_at > facts.request_limit
        and not any(_froze_on_its_way(freeze, request) for freeze in facts.freezes)
    ]


def _froze_on_its_way(freeze: Freeze, request: Request) -> bool:
    meanwhile = freeze.since - _CLOCK <= request.received_at and freeze.until + _CLOCK >= request.guarded_at
    return freeze.writer == request.writer and meanwhile


def _late(facts: Facts) -> list[Request]:
    opened = {event["writer_epoch"]: event["at"] for event in facts.events if event["kind"] == "writer.opened"}
    return [r for r in facts.requests if r.received_at > opened.get(r.epoch + 1, float("inf"))]


def g3_accounting(facts: Facts) -> Violations:
    """At each end of a run the operations add up to the plan, and they were tried in its order."""
    for run in facts.runs.values():
        done: dict[str, str] = {}
        last: dict[str, str] = {}
        in_doubt: set[str] = set()
        for event in (event for event in facts.events if event["run_id"] == run.run_id):
            kind, operation_id = event["kind"], event["operation_id"]
            if kind.startswith("operation."):
                if run.lines[event["ordinal"]]["operation_id"] != operation_id:
                    yield Violation("G3", f"{run.run_id}: {operation_id} is not number {event['ordinal']}")
                if kind != "operation.skipped" and any(
                    line["operation_id"] not in done
                    for line in run.lines[: event["ordinal"]]
                    if line["action"] != "delete"
                ):
                    yield Violation("G3", f"{run.run_id}: number {event['ordinal']} was tried before its turn")
                last[operation_id] = kind
                if kind in _SUCCESS:
                    done[operation_id] = kind
                    in_doubt.discard(operation_id)
                elif kind == "operation.unknown":
                    in_doubt.add(operation_id)
            elif kind in _ENDS:
                yield from _end_adds_up(facts, event, run.lines, done, last, in_doubt)


def _end_adds_up(
    facts: Facts, event: Row, lines: list[dict[str, Any]], done: dict[str, str], last: dict[str, str], doubt: set[str]
) -> Violations:
    body, kind, where = facts.body(event), event["kind"], f"{event['run_id']} at {event['position']} ({event['kind']})"
    planned = {line["operation_id"] for line in lines}
    if kind == "run.applied" and (set(done) != planned or doubt):
        yield Violation("G3", f"{where}: {len(planned ^ set(done))} operations are not accounted for")
    if kind == "run.stopped" and doubt:
        yield Violation("G3", f"{where}: stopped with {sorted(doubt)} in doubt")
    if kind in ("plan.refused", "run.stopped"):
        return
    failed = body["failed_operation"]
    if kind == "run.failed" and (last.get(failed) != "operation.failed" or failed in doubt):
        yield Violation("G3", f"{where}: {failed} is {last.get(failed)}, in doubt: {failed in doubt}")
    if kind == "run.interrupted" and failed not in doubt:
        yield Violation("G3", f"{where}: {failed} is not in doubt")
    counts = Counter(done.values())
    told = (body["applied"], body["skipped"], body["not_attempted"])
    left = len(planned) - len(done) - (failed is not None)
    if told != (counts["operation.applied"], counts["operation.skipped"], left):
        yield Violation("G3", f"{where}: told {told}, recorded {dict(counts)} of {len(planned)}")


def g4_doubt_is_bounded(facts: Facts) -> Violations:
    """Each request has its mark and its outcome; of each writer at most one has its outcome from a successor."""
    outcomes = {((e["run_id"], e["ordinal"]), e["attempt"]): e for e in facts.outcomes()}
    requests = Counter((r.place, r.attempt) for r in facts.requests if not r.shed)
    for (place, attempt), count in requests.items():
        if count > 1:
            yield Violation("G4", f"{place} attempt {attempt}: {count} requests in one attempt")
    left: dict[int, set[object]] = {}
    for request in facts.requests:
        outcome = outcomes.get((request.place, request.attempt))
        if outcome is None:
            yield Violation("G4", f"{request.place} attempt {request.attempt} was sent and has no outcome")
        elif outcome["writer_epoch"] != request.epoch:
            left.setdefault(request.epoch, set()).add((request.place, request.attempt))
            if facts.body(outcome).get("error") != "WriterDiedError":
                yield Violation("G4", f"{request.place}: the outcome is of another writer, which did not say so")
    for epoch, places in left.items():
        if len(places) > 1:
            yield Violation("G4", f"epoch {epoch} left {len(places)} operations in doubt")
    died = Counter(e["writer_epoch"] for e in facts.outcomes() if facts.body(e).get("error") == "WriterDiedError")
    for epoch, count in died.items():
        if count > 1:
            yield Violation("G4", f"epoch {epoch} found {count} operations in flight")


def g5_never_falsely_unwritten(facts: Facts) -> Violations:
    """What is recorded as unwritten was not written, and what is recorded as not sent did not arrive."""
    for event in facts.outcomes():
        place, body = (event["run_id"], event["ordinal"]), facts.body(event)
        same = [r for r in facts.requests if (r.place, r.attempt) == (place, event["attempt"])]
        if event["kind"] == "operation.failed" and (body.get("wrote") is not False or any(r.written for r in same)):
            yield Violation("G5", f"{place} attempt {event['attempt']}: said unwritten, and it was written")
        if event["kind"] == "operation.unknown" and body.get("wrote") is not None:
            yield Violation("G5", f"{place} attempt {event['attempt']}: unknown, yet it says {body.get('wrote')}")
        if event["kind"] == "operation.unknown" and not body.get("sent") and same:
            yield Violation("G5", f"{place} attempt {event['attempt']}: said unsent, and it arrived")
        if event["kind"] == "operation.skipped" and (same or facts.operation(place).get("action") != "delete"):
            yield Violation("G5", f"{place}: said skipped, and it is no recorded delete, or was sent")
    for event in facts.events:
        if event["kind"] == "run.failed":
            failed = facts.body(event)["failed_operation"]
            written = [r for r in facts.requests if r.written and r.place[0] == event["run_id"]]
            if any(facts.operation(r.place).get("operation_id") == failed for r in written):
                yield Violation("G5", f"{event['run_id']}: failed at {failed}, which was written")


def g6_never_falsely_applied(facts: Facts) -> Violations:
    """Behind each applied operation is a request of it that wrote that node, before it was recorded."""
    for event in facts.outcomes():
        if event["kind"] != "operation.applied":
            continue
        place, node_id = (event["run_id"], event["ordinal"]), facts.body(event)["node_id"]
        if not any(
            r.place == place and r.written and r.node_id == node_id and (r.decided_at or 0.0) <= event["at"]
            for r in facts.requests
        ):
            yield Violation("G6", f"{place} is applied to {node_id}, and no request of it wrote that")
        if node_id not in facts.after:
            yield Violation("G6", f"{place} is applied to {node_id}, which is not at the destination")


def g7_once_recorded(facts: Facts) -> Violations:
    """One row and one event for each commit, however often it came; one outcome an attempt; one success."""
    commits = [row for row in facts.inbox if row["kind"] == "commit"]
    events = [event["run_id"] for event in facts.events if event["kind"] == "plan.committed"]
    once = sorted(facts.runs)
    if sorted(row["run_id"] for row in commits) != once or sorted(events) != once:
        yield Violation("G7", f"{len(facts.runs)} commits, {len(commits)} rows of the inbox, {len(events)} events")
    rows = {row["run_id"]: row["inbox_id"] for row in commits}
    for receipt in facts.receipts:
        if rows.get(receipt["run_id"]) != receipt["inbox_id"]:
            yield Violation("G7", f"{receipt['run_id']}: answered with row {receipt['inbox_id']}")
    outcomes = facts.outcomes()
    attempts: dict[tuple[str, str], list[int]] = {}
    for event in outcomes:
        attempts.setdefault((event["run_id"], event["operation_id"]), []).append(event["attempt"])
    for operation, numbers in attempts.items():
        if numbers != list(range(1, len(numbers) + 1)):
            yield Violation("G7", f"{operation}: attempts {numbers}")
    successes = Counter((e["run_id"], e["operation_id"]) for e in outcomes if e["kind"] in _SUCCESS)
    for operation, count in successes.items():
        if count > 1:
            yield Violation("G7", f"{operation} succeeded {count} times")


def g8_append_only(facts: Facts) -> Violations:
    """No gap, every hash follows from the one before, the head is the last, and what was acknowledged is there."""
    before = bytes(32)
    for number, event in enumerate(facts.events, start=1):
        if event["position"] != number:
            yield Violation("G8", f"position {event['position']} where {number} has to be")
        if event["prev_hash"] != before or event["hash"] != chain_hash(facts.binding, event):
            yield Violation("G8", f"position {event['position']} does not follow from the one before")
        before = event["hash"]
    if (facts.binding["head_position"], facts.binding["head_hash"]) != (len(facts.events), before):
        yield Violation("G8", f"the head is {facts.binding['head_position']}, the last event {len(facts.events)}")
    hashes = {event["position"]: event["hash"].hex() for event in facts.events}
    for position, seen in facts.seen:
        if position and hashes.get(position) != seen:
            yield Violation("G8", f"position {position} was acknowledged and is gone, or is another event")


def chain_hash(binding: Row, event: Row) -> bytes:
    """From the paragraph in design section 6: every field with its length before it, NULL as eight bytes ff."""
    parts: list[bytes | None] = [binding["url"].encode(), binding["branch"].encode()]
    for name in _HASHED:
        value = event[name]
        if value is None:
            parts.append(None)
        elif (size := _HASHED[name]) is not None:
            parts.append(value.to_bytes(size, "big", signed=True))
        else:
            parts.append(value.bytes if name == "event_id" else value.encode())
    encoded = (b"\xff" * 8 if part is None else len(part).to_bytes(8, "big") + part for part in parts)
    return hashlib.sha256(b"\x01" + event["prev_hash"] + b"".join(encoded)).digest()


def at_rest(facts: Facts) -> Violations:
    """Nothing is in flight, nothing waits, and each run is applied, was refused, or stands at what must be refused."""
    if facts.binding["in_flight_run"] is not None:
        yield Violation("at rest", f"still in flight: {facts.binding['in_flight_run']}")
    waiting = [(row["kind"], row["run_id"]) for row in facts.inbox if row["state"] == "open"]
    if waiting:
        yield Violation("at rest", f"still open: {waiting}")
    for run in facts.runs.values():
        ends = [event for event in facts.events if event["run_id"] == run.run_id and event["kind"] in _ENDS]
        kind = ends[-1]["kind"] if ends else "none"
        # after an earlier attempt that may have written, its refusal proves nothing: interrupted (G5)
        ended = kind in ("run.failed", "run.interrupted")
        at_doomed = ended and run.doomed is not None and facts.body(ends[-1])["failed_operation"] == run.doomed
        stale = kind == "plan.refused" and all(
            finding["name"] in ("StalePlanError", "OverlapRefusedError") for finding in facts.body(ends[-1])["findings"]
        )
        if not (kind == "run.applied" or at_doomed or stale):
            told = json.dumps(facts.body(ends[-1]))[:400] if ends else ""
            yield Violation("at rest", f"run {run.run_id} ended with {kind} {told}")


CHECKS: tuple[Callable[[Facts], Violations], ...] = (
    g1_reviewed_is_applied,
    g2_one_writer,
    g3_accounting,
    g4_doubt_is_bounded,
    g5_never_falsely_unwritten,
    g6_never_falsely_applied,
    g7_once_recorded,
    g8_append_only,
    at_rest,
)
