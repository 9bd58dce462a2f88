"""Outcomes with their plan lines as records of bytes, many at a time: what a state of a million events is folded from.

A record is the head that the database gives (:class:`ledger.store.records.OutcomeHeads`) and the plan's line. It waits
as it came; what the fold needs is read of it when its object is folded.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

from ledger.audit.bodies import parsed
from ledger.audit.outcome_lines import checksum_of_run
from ledger.commit import utc_text
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow, OutcomeHeads

Progress = Callable[[int, int], None]
Records = tuple[Sequence[bytes], Sequence[int], Sequence[bytes]]
"""Object keys, positions, records."""

_SIZE = struct.Struct(">I").unpack_from
_RUN_AT = 1 + 8 + 4
_TIME = struct.Struct(">xq").unpack_from
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MOMENT = 253_402_300_799_999_999
_NODE_ID = re.compile(rb'\{"duration_ms":[0-9]+,"node_id":"([ !#-\[\]-~]*)",')
"""As nearly all bodies begin; another one is read as JSON, which takes four times as long."""
_scan = json.JSONDecoder().raw_decode


async def outcome_records(
    ledger: Ledger, row: BindingRow, until: int, progress: Progress | None
) -> AsyncIterator[Records]:
    """Every applied, unknown and skipped operation up to a position, in order, some thousand at a time.

    Raises:
        PlanOfRunMissingError: a run has outcomes and no stored plan.
        StoreError: the database cannot be read.
    """
    checksums: dict[str, str] = {}
    async with aclosing(ledger.outcome_heads(row.id, until=until)) as pages:
        async for page in pages:
            for run_id, ordinals, positions, heads in _by_run(page):
                if run_id not in checksums:
                    checksums[run_id] = await checksum_of_run(ledger, row, run_id)
                planned = await ledger.planned_between(checksums[run_id], min(ordinals), max(ordinals))
                yield _joined(ordinals, positions, heads, *planned)
            if progress:
                progress(page.positions[-1], until)


def node_id_in(record: bytes) -> str:
    """The id that the destination answered with; empty where the body says none."""
    body_at = _RUN_AT + _SIZE(record, _RUN_AT - 4)[0] + 4
    if found := _NODE_ID.match(record, body_at):
        return found[1].decode()
    body = parsed(record[body_at : body_at + _SIZE(record, body_at - 4)[0]])
    return str(body.get("node_id") or "") if isinstance(body, dict) else ""


def run_and_time(record: bytes) -> tuple[str, str]:
    """The run of a record, and when it was recorded."""
    run_id = record[_RUN_AT : _RUN_AT + _SIZE(record, _RUN_AT - 4)[0]].decode()
    (moment,) = _TIME(record)
    return run_id, utc_text(_EPOCH + timedelta(microseconds=min(moment, _LAST_MOMENT)))


def parsed_line(record: bytes) -> dict[str, Any]:
    """The operation of a record's line; without anything in it where it is none."""
    body_at = _RUN_AT + _SIZE(record, _RUN_AT - 4)[0] + 4
    line = record[body_at + _SIZE(record, body_at - 4)[0] :]
    try:
        text = line.decode()
        value, end = _scan(text)
    except (ValueError, RecursionError):
        return {}
    if text[end:] != "\n":
        value = parsed(line)
    return value if isinstance(value, dict) else {}


def _by_run(page: OutcomeHeads) -> Iterator[tuple[str, Sequence[int], Sequence[int], Sequence[bytes]]]:
    """Runs of a page with the ordinals, positions and heads of their outcomes, in pieces that stand together."""
    kept = [
        (run_id or "", ordinal or 0, position, head)
        for position, run_id, ordinal, head in zip(*page, strict=True)
        if head is not None
    ]
    start = 0
    for end in range(1, len(kept) + 1):
        if end == len(kept) or kept[end][0] != kept[start][0]:
            _, ordinals, positions, heads = zip(*kept[start:end], strict=True)
            yield kept[start][0], ordinals, positions, heads
            start = end


def _joined(
    ordinals: Sequence[int],
    positions: Sequence[int],
    heads: Sequence[bytes],
    planned: Sequence[int],
    keys: Sequence[bytes],
    lines: Sequence[bytes],
) -> Records:
    """Each outcome with its line; one whose line is not there says nothing of any object."""
    if tuple(ordinals) == tuple(planned):
        return keys, positions, [head + line for head, line in zip(heads, lines, strict=True)]
    place = {ordinal: number for number, ordinal in enumerate(planned)}
    found = [
        (place[o], position, head) for o, position, head in zip(ordinals, positions, heads, strict=True) if o in place
    ]
    return (
        [keys[number] for number, _, _ in found],
        [position for _, position, _ in found],
        [head + lines[number] for number, _, head in found],
    )
