"""Whether the guarantees held in a soak: from the ledger's rows, the destination, the topics, and what was published.

Nothing of the service is asked. The requests of a real worker carry no mark that only a test would send; which
operation one belongs to stands in what it writes, and under which attempt it came follows from the times of the log:
between the record before that attempt and its outcome there is room for one request, and outside there is none.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tests.faults.checker import (
    Violation,
    at_rest,
    chain_hash,
    g1_reviewed_is_applied,
    g3_accounting,
    g5_never_falsely_unwritten,
    g6_never_falsely_applied,
    g7_once_recorded,
    g8_append_only,
)
from tests.faults.end_state import end_state_violations
from tests.faults.facts import Facts, Request, Row

Violations = Iterator[Violation]
_CHECKS = (
    g1_reviewed_is_applied,
    g3_accounting,
    g5_never_falsely_unwritten,
    g6_never_falsely_applied,
    g7_once_recorded,
    g8_append_only,
    at_rest,
)
_SOON = 5.0
"""Seconds after a thaw within which a request that a frozen writer had begun can still arrive on a busy machine."""

_CLOCK = 0.05


@dataclass(frozen=True)
class Message:
    """A message as an independent reader found it on a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


@dataclass(frozen=True)
class Window:
    """The time of one attempt: from the record before it to its outcome, or to the moment its writer was replaced."""

    attempt: int
    epoch: int
    since: float
    until: float


def check_binding(facts: Facts) -> tuple[list[Violation], Counter[str]]:
    """Everything that does not hold on one binding, and what happened there."""
    requests, strays, found = attributed(facts)
    known = replace(facts, requests=requests)
    found += [violation for check in _CHECKS for violation in check(known)]
    found += one_writer(known, strays)
    found += [Violation("end state", text) for text in end_state_violations(known, strays)]
    counts = Counter(event["kind"] for event in facts.events)
    counts["requests"] = len(requests)
    counts["requests that a frozen worker had begun"] = len(strays)
    counts["requests of lost answers"] = sum(r.decided_at is None for r in requests)
    return found, counts


def windows(facts: Facts) -> dict[tuple[str, int], list[Window]]:
    """For each operation the times in which it may be sent, from the log alone."""
    found: dict[tuple[str, int], list[Window]] = {}
    opened: dict[int, float] = {}
    last: tuple[int, float] = (0, 0.0)
    before: tuple[int, float] = (0, 0.0)
    for event in facts.events:
        epoch = event["writer_epoch"]
        if epoch is None:
            continue
        if event["kind"] == "writer.opened":
            opened[epoch], before = event["at"], last
        elif event["kind"] in ("operation.applied", "operation.failed", "operation.unknown"):
            died = facts.body(event).get("error") == "WriterDiedError"
            since = before if died else last
            until = opened[epoch] if died else event["at"]
            window = Window(event["attempt"], before[0] if died else epoch, since[1], until)
            found.setdefault((event["run_id"], event["ordinal"]), []).append(window)
        last = (epoch, event["at"])
    return found


def attributed(facts: Facts) -> tuple[list[Request], list[Request], list[Violation]]:
    """The requests with attempt and epoch; those that a frozen worker had begun; and those that nothing explains."""
    times, taken = windows(facts), Counter[tuple[tuple[str, int], int]]()
    requests, strays, wrong = [], [], []
    thaws = sorted(freeze.until for freeze in facts.freezes)
    for request in facts.requests:
        at = request.received_at
        window = next((w for w in times.get(request.place, ()) if w.since <= at <= w.until), None)
        if window is not None:
            if not request.shed:
                taken[request.place, window.attempt] += 1
            requests.append(replace(request, attempt=window.attempt, epoch=window.epoch))
            continue
        thaw = next((t for t in thaws if t - _CLOCK <= at <= t + _SOON), None)
        if thaw is None:
            wrong.append(Violation("G2", f"{request.place} came at {at:.3f}, outside of every attempt at it"))
        else:
            thaws.remove(thaw)
            strays.append(request)
        requests.append(request)
    wrong += [
        Violation("G4", f"{place} attempt {attempt}: {count} requests in one attempt")
        for (place, attempt), count in taken.items()
        if count > 1
    ]
    return requests, strays, wrong


def one_writer(facts: Facts, strays: Sequence[Request]) -> Violations:
    """Epochs never go back in the log, and no request came while another one was being decided."""
    epoch = 0
    for event in facts.events:
        if event["kind"] == "writer.opened":
            if event["writer_epoch"] != epoch + 1:
                yield Violation("G2", f"position {event['position']}: epoch {event['writer_epoch']} after {epoch}")
            epoch = event["writer_epoch"]
        elif event["writer_epoch"] not in (None, epoch):
            yield Violation("G2", f"position {event['position']}: epoch {event['writer_epoch']} under {epoch}")
    died = Counter(e["writer_epoch"] for e in facts.outcomes() if facts.body(e).get("error") == "WriterDiedError")
    for number, count in died.items():
        if count > 1:
            yield Violation("G4", f"epoch {number} found {count} operations in flight")
    ended, excused = 0.0, {id(request) for request in strays}
    for request in facts.requests:
        if request.shed or id(request) in excused:
            continue
        if request.received_at < ended:
            yield Violation("G2", f"{request.place} came {ended - request.received_at:.3f} s before another one ended")
        if request.decided_at is None:
            yield Violation("G2", f"{request.place} never ended")
        ended = max(ended, request.decided_at or 0.0)


def check_commits(
    messages: Sequence[Message], bodies: Mapping[bytes, str], inbox: Sequence[Row], refusals: Sequence[Row]
) -> Violations:
    """Each message is a commit of the list, which is in the inbox once, or has a recorded refusal of its very bytes.

    ``bodies`` are the canonical bytes of what was published, with the id of each commit.
    """
    expected: dict[tuple[str, int, int], bytes] = {}
    seen: set[str] = set()
    for message in messages:
        place = (message.topic, message.partition, message.offset)
        is_whole = message.key is not None and message.headers and message.value is not None
        if is_whole and message.value in bodies:
            seen.add(bodies[message.value or b""])
        else:
            expected[place] = hashlib.sha256(message.value or b"").digest()
    for lost in set(bodies.values()) - seen:
        yield Violation("G10", f"commit {lost} was acknowledged and is not on the topic")
    rows = Counter(str(row["commit_id"]) for row in inbox if row["kind"] == "commit")
    for commit in set(bodies.values()) | set(rows):
        if rows[commit] != 1 or commit not in seen:
            yield Violation("G7", f"commit {commit} has {rows[commit]} rows of the inbox")
    recorded = {(row["topic"], row["partition"], row["offset"]): row["digest"] for row in refusals}
    for place in expected.keys() ^ recorded.keys():
        yield Violation("G10", f"{place} is {'not refused' if place in expected else 'refused and a commit'}")
    for place in expected.keys() & recorded.keys():
        if expected[place] != recorded[place]:
            yield Violation("G10", f"the refusal of {place} names other bytes")


def check_events(messages: Sequence[Message], bindings: Mapping[bytes, tuple[Row, Sequence[Row]]]) -> Violations:
    """The topic alone gives every event, in order, with a chain that follows, up to the ledger's own head.

    ``bindings`` are, by key of their messages, the row of each binding and its events.
    """
    heads: dict[bytes, tuple[int, bytes]] = {key: (0, bytes(32)) for key in bindings}
    bodies: dict[tuple[bytes, int], tuple[bytes | None, bytes]] = {}
    for message in messages:
        key = message.key or b""
        if key not in bindings:
            yield Violation("G10", f"offset {message.offset}: an event of nobody")
            continue
        position, hash_ = (
            int(message.headers["ledger_position"]),
            bytes.fromhex(message.headers["ledger_hash"].decode()),
        )
        head = heads[key]
        if position <= head[0]:
            if bodies.get((key, position)) != (message.value, hash_):
                yield Violation("G8", f"offset {message.offset}: position {position} came again as another event")
            continue
        event = _event_of(message)
        if position != head[0] + 1 or event["prev_hash"] != head[1]:
            yield Violation("G10", f"offset {message.offset}: position {position} behind {head[0]}")
        if chain_hash(bindings[key][0], event) != hash_:
            yield Violation("G8", f"offset {message.offset}: the hash does not follow from the message")
        heads[key], bodies[key, position] = (position, hash_), (message.value, hash_)
    for key, (row, events) in bindings.items():
        if heads[key] != (len(events), row["head_hash"]):
            yield Violation("G10", f"{row['branch']}: the topic ends at {heads[key][0]}, the ledger at {len(events)}")
        for event in events:
            if bodies.get((key, event["position"])) != (event["body"].encode(), event["hash"]):
                yield Violation("G8", f"{row['branch']}: position {event['position']} is another one on the topic")


def _event_of(message: Message) -> Row:
    """What is hashed, from key, headers and body, by the names of the log's columns."""
    numbers = {"schema_version": "schema_version", "position": "position", "microseconds": "recorded_at"}
    numbers |= {"writer_epoch": "epoch", "ordinal": "ordinal", "attempt": "attempt"}
    headers = {name: value.decode() for name, value in message.headers.items()}
    found: dict[str, object] = {
        name: int(headers[f"ledger_{header}"]) if f"ledger_{header}" in headers else None
        for name, header in numbers.items()
    }
    for name in ("kind", "run_id", "operation_id"):
        found[name] = headers.get(f"ledger_{name}")
    return found | {
        "event_id": _Uuid(bytes.fromhex(headers["ce_id"].replace("-", ""))),
        "body": (message.value or b"").decode(),
        "prev_hash": bytes.fromhex(headers["ledger_prev_hash"]),
    }


@dataclass(frozen=True)
class _Uuid:
    """As the checker reads one."""

    bytes: bytes
