"""The hash of an event: the database and this program compute the same, of every value that there is (G8)."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ledger.chain import event_hash
from ledger.events import StoredEvent
from tests.support.store import (
    BINDING,
)

pytestmark = pytest.mark.integration


GENESIS = bytes(32)


VECTORS = (
    (
        (
            1,
            "00000000-0000-4000-8000-000000000001",
            "writer.opened",
            None,
            None,
            None,
            None,
            1795953600123456,
            '{"a":1}',
        ),
        "2b245bd3a047cbcdd8c2726fb6af3c58cb3e71dada20b23b17295729ce2e2d05",
    ),
    (
        (
            2,
            "00000000-0000-4000-8000-000000000002",
            "operation.applied",
            "20261129T1900-0a1b2c3d",
            "op_3531c0d83d698fd1",
            0,
            1,
            1795953600123457,
            '{"é":"☃"}',
        ),
        "59412f878bf41669abeceaafeeb2f6cc90270ea08ae0c07b68e5b9651ace56d0",
    ),
)


@pytest.mark.rules("G8")
async def test_g08_the_database_hashes_as_the_agreed_vectors_say(admin: Any) -> None:
    previous = GENESIS
    for (position, event_id, kind, run, operation, ordinal, attempt, micros, body), expected in VECTORS:
        previous = await admin.fetchval(
            "select ledger.event_hash_v1($1, 'http://infrahub.example:8000', 'main', $2, $3, $4, 1, 1, $5, $6, $7, $8,"
            " $9, $10)",
            previous,
            position,
            uuid.UUID(event_id),
            kind,
            run,
            operation,
            ordinal,
            attempt,
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros),
            body,
        )
        assert previous.hex() == expected


@pytest.mark.rules("G8")
async def test_g08_both_programs_take_every_number_with_its_sign_and_to_its_end(admin: Any) -> None:
    """No append stores most of these; a forger might, and the verifier must not see other bytes than the database."""
    wide = (-(2**63), -1, 0, 1, 2**31, 2**63 - 1)
    narrow = (-(2**31), -1, 0, 1, 2**31 - 1)
    # the driver takes the very first and last moment for -infinity and infinity
    moments = [datetime(1, 1, 2, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)]
    moments += [datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999998, tzinfo=UTC)]
    base = StoredEvent(
        url=BINDING.url,
        branch=BINDING.branch,
        position=1,
        event_id=uuid.UUID(int=1),
        kind="operation.applied",
        schema_version=1,
        run_id="",
        operation_id=None,
        ordinal=None,
        attempt=None,
        writer_epoch=None,
        recorded_at=moments[2],
        body=b"{}",
        prev_hash=bytes(32),
        hash=bytes(32),
    )
    events = [base._replace(position=n, ordinal=n, writer_epoch=n) for n in wide]
    events += [base._replace(schema_version=n, attempt=n) for n in narrow]
    events += [base._replace(recorded_at=moment) for moment in moments]
    for event in events:
        stored = await admin.fetchval(
            "select ledger.event_hash_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
            event.prev_hash,
            event.url,
            event.branch,
            event.position,
            event.event_id,
            event.kind,
            event.schema_version,
            event.writer_epoch,
            event.run_id,
            event.operation_id,
            event.ordinal,
            event.attempt,
            event.recorded_at,
            event.body.decode(),
        )
        assert stored == event_hash(event), event
