"""FF40: bodies are JSON objects by a check of the database, whole numbers are 64 bits wide, times are aware and UTC."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from ledger.audit.replay import replay_record
from ledger.audit.verify import verify_binding
from ledger.chain import event_hash
from ledger.errors import ApplyLedgerError
from ledger.events import NewEvent
from ledger.exit_codes import ExitCode
from ledger.plan.reader import load_plan_artifact
from ledger.store.errors import BodyRefusedError, ConstraintRefusedError, StoreError, UnknownPositionError
from ledger.store.ledger import Ledger
from ledger.store.records import InFlight, Lease
from ledger.store.writer import WriterStore
from tests.support.command_line import CommandLine
from tests.support.inventory_operations import manufacturer
from tests.support.plans import manifest_document, raw_run
from tests.support.real_writer import RealWriter
from tests.support.store import RUN, applied, chain_is_whole, claim, connection_to, make_commit, open_writer

pytestmark = pytest.mark.integration

BEYOND = 2**31 + 1
HUGE = 2**63 - 1
TOKYO = "Asia/Tokyo"


@pytest.fixture
async def writer(real: RealWriter) -> AsyncIterator[WriterStore]:
    async with open_writer(real.dsn) as store:
        yield store


@pytest.fixture
async def lease(real: RealWriter, writer: WriterStore) -> Lease:
    return await claim(writer, await real.binding_id())


def event(body: str, number: int = 0) -> NewEvent:
    """An outcome with any text for a body."""
    return NewEvent(
        event_id=uuid.uuid5(uuid.NAMESPACE_OID, f"{number}{body}"),
        kind="operation.applied",
        body=body.encode(),
        run_id=RUN,
        operation_id=f"op_{number:016x}",
        ordinal=number,
        attempt=1,
    )


DUMPED_TWICE = json.dumps(json.dumps({"node_id": "n"}))


NO_OBJECTS = [
    DUMPED_TWICE,
    json.dumps(DUMPED_TWICE),
    '[{"node_id":"n"}]',
    "null",
    "1.1",
    "true",
    '""',
    "",
    "{",
    "{'a':1}",
    "NaN",
]


@pytest.mark.rules("G8")
async def test_ff40_a_body_that_is_no_object_is_refused_by_the_database(
    real: RealWriter, writer: WriterStore, lease: Lease
) -> None:
    """JSON that was dumped twice raises nothing in the driver: it is a text, and a text is JSON too."""
    position = await real.head()
    for body in NO_OBJECTS:
        with pytest.raises((BodyRefusedError, ConstraintRefusedError)):
            await writer.append(lease, [event(body)])
        assert await real.head() == position, body
    await writer.append(lease, [event('{"node_id":"n"}')])
    assert await chain_is_whole(real.ledger, await real.binding_id()) == 2


@pytest.mark.rules("G8")
async def test_ff40_an_order_that_is_no_object_is_refused_by_the_database(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    binding_id = await real.binding_id()
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        for body in (DUMPED_TWICE, "[]", "null"):
            with pytest.raises(asyncpg.CheckViolationError):
                await admin.execute(
                    "insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position)"
                    " values ($1, 1, gen_random_uuid(), 'stop', 'run-1', $2, 0)",
                    binding_id,
                    body,
                )


@pytest.mark.rules("G8", "G9")
async def test_ff40_numbers_and_texts_come_back_as_the_bytes_that_went_in(
    real: RealWriter, writer: WriterStore, lease: Lease
) -> None:
    """Through every connection of the pool: no codec of one of them reads them in another way."""
    bodies = [
        '{"node_id":"n","x":1.1}',
        '{"x":0.1}',
        '{"x":1e+22}',
        '{"x":9007199254740993}',
        '{"x":18446744073709551616}',
        '{"x":-0.0}',
        '{"x":1.10}',
        '{"b":1,"a":2}',
        '{"x":"\u2028 é e\u0301 \\u0041"}',
    ]
    for number, body in enumerate(bodies):
        await writer.append(lease, [event(body, number)])
    binding_id = await real.binding_id()

    async def read() -> list[bytes]:
        found = [stored async for stored in real.ledger.events(binding_id, run_id=RUN)]
        assert all(type(stored.body) is bytes and stored.hash == event_hash(stored) for stored in found)
        return [stored.body for stored in found]

    for found in await asyncio.gather(*(read() for _ in range(12))):
        assert found == [body.encode() for body in bodies]
    records = [replay_record(stored) for stored in await real.events(RUN)]
    assert records[0]["body"]["x"] == 1.1
    assert str(records[0]["body"]["x"]) == "1.1"
    assert records[3]["body"]["x"] == 9007199254740993


WIDE = {"offset", "position", "ordinal", "inbox_id", "binding_id", "head_position", "writer_epoch", "operations_count"}
_COLUMNS = """
select table_name || '.' || column_name as name, column_name, data_type from information_schema.columns
where table_schema = 'ledger'
"""


@pytest.mark.rules("G8")
async def test_ff40_no_column_is_too_narrow_or_without_a_zone(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str]
) -> None:
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        columns = await admin.fetch(_COLUMNS)
    types = {row["data_type"] for row in columns}
    assert "timestamp without time zone" not in types
    assert not types & {"json", "jsonb", "real", "smallint", "time without time zone", "date"}
    wide = [row for row in columns if row["column_name"] in WIDE or row["column_name"].endswith("_ordinal")]
    assert {row["column_name"] for row in wide} >= WIDE
    assert {row["data_type"] for row in wide} == {"bigint"}


@pytest.mark.rules("G8", "G10")
async def test_ff40_positions_beyond_32_bits(
    real: RealWriter, writer: WriterStore, lease: Lease, postgres18_ledger_dsns: dict[str, str]
) -> None:
    binding_id = await real.binding_id()
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        for offset in (BEYOND, 2**32, HUGE):
            await admin.execute(
                'insert into ledger.intake_refusal (topic, partition, "offset", digest, reason)'
                " values ('plan-commits', 2147483647, $1, sha256('x'), 'no JSON')",
                offset,
            )
        kept = await admin.fetch('select "offset" from ledger.intake_refusal order by 1')
        assert [row["offset"] for row in kept] == [BEYOND, 2**32, HUGE]
    await writer.append(lease, [applied(lease, BEYOND)], in_flight=InFlight(RUN, HUGE, 1))
    row = await real.ledger.binding(real.binding)
    assert row is not None
    assert row.in_flight == InFlight(RUN, HUGE, 1)
    assert (await real.events(RUN))[0].ordinal == BEYOND
    assert await chain_is_whole(real.ledger, binding_id) == 2
    for position in (BEYOND, HUGE):
        with pytest.raises(UnknownPositionError, match=str(position)):
            await real.ledger.submit_commit(binding_id, make_commit(binding=real.binding, ledger_position=position))
    assert [found async for found in real.ledger.events(binding_id, after=BEYOND)] == []


@pytest.mark.rules("G8", "G9")
async def test_ff40_times_are_those_of_the_moment_in_utc_wherever_the_server_stands(
    real: RealWriter, postgres18_ledger_dsns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's zone is Tokyo's, and so is that of every session that does not ask for another one."""
    monkeypatch.setenv("TZ", TOKYO)
    monkeypatch.setenv("PGTZ", TOKYO)
    async with connection_to(postgres18_ledger_dsns["admin"]) as admin:
        database = await admin.fetchval("select current_database()")
        await admin.execute(f"alter database \"{database}\" set timezone = '{TOKYO}'")
        await admin.execute(f"alter role ledger_writer in database \"{database}\" set timezone = '{TOKYO}'")
    async with connection_to(real.dsn) as other:
        assert await other.fetchval("show timezone") == TOKYO
    before = datetime.now(UTC)
    async with await Ledger.open(real.dsn, allow_unsafe_fsync=True) as ledger:
        real.ledger = ledger
        await real.commit("run-1", [manufacturer("first"), manufacturer("second")])
        assert (await real.writer().drain("run-1", by="ada")).ending == "run.applied"
        events = await real.events()
        for stored in events:
            assert stored.recorded_at.utcoffset() == timedelta(0)
            assert before - timedelta(minutes=1) <= stored.recorded_at <= datetime.now(UTC) + timedelta(minutes=1)
            assert replay_record(stored)["recorded_at"].endswith("+00:00")
        order = [stored.recorded_at for stored in events]
        assert order == sorted(order)
        assert (await verify_binding(ledger, real.binding)).holds
        row = await ledger.binding(real.binding)
        assert row is not None


@pytest.mark.rules("G8")
async def test_ff40_two_events_of_one_transaction_have_the_time_of_their_own(
    real: RealWriter, lease: Lease, postgres18_ledger_dsns: dict[str, str]
) -> None:
    """``now()`` stands still in a transaction: the time of its beginning would be recorded, however long it took."""
    statement = (
        "select first_position from ledger.append_control_v1($1, array[$2::uuid], array['plan.refused'], array[1],"
        " array['run-1'], array['{}'], null)"
    )
    async with connection_to(real.dsn) as connection, connection.transaction():
        began = await connection.fetchval("select now()")
        for _ in range(2):
            await connection.fetchval(statement, lease.binding_id, uuid.uuid4())
        assert await connection.fetchval("select now()") == began
    first, second = (await real.events("run-1"))[-2:]
    assert began < first.recorded_at < second.recorded_at
    assert await chain_is_whole(real.ledger, lease.binding_id) == 3


@pytest.mark.rules("A59")
@pytest.mark.parametrize(
    "moment",
    [
        "2026-01-01T10:00:00",
        "2026-01-01T10:00:00.000000+09:00",
        "2026-01-01",
        "1767261600",
        "2026-01-01T10:00:00Ztokyo",
    ],
)
def test_ff40_a_manifest_without_a_zone_of_utc_is_torn(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Read in the zone of whoever looks, it would be nine hours off, and an old plan would pass for a new one."""
    monkeypatch.setenv("TZ", TOKYO)
    with pytest.raises(ApplyLedgerError) as refused:
        load_plan_artifact(raw_run(tmp_path, b"", manifest_document(b"", created_at=moment)))
    assert refused.value.exit_code is ExitCode.REFUSED
    assert "created_at" in str(refused.value.findings[0])


@pytest.mark.rules("G8", "A59")
def test_ff40_a_person_in_tokyo_reads_the_same_record(cli: CommandLine) -> None:
    cli.variables = {"TZ": TOKYO, "PGTZ": TOKYO}
    cli.source({"name": "prod", "description": "2026-01-01 10:00"})
    before = datetime.now(UTC) - timedelta(minutes=1)
    planned = cli.plan()
    summary = cli.summary(cli.apply(planned), 0)
    after = datetime.now(UTC) + timedelta(minutes=1)
    manifest = json.loads((cli.folder / "runs" / planned["run"] / "plan" / "manifest.json").read_bytes())
    told = [manifest["created_at"], summary["started_at"], summary["ended_at"]]
    events = json.loads(cli.run("replay", "--run", planned["run_id"], "--output", "json").stdout)
    told += [record["recorded_at"] for record in events]
    assert len(told) == 7
    for moment in told:
        assert moment.endswith("+00:00")
        assert before <= datetime.fromisoformat(moment) <= after
    content = cli.sandbox.store.content(branch=cli.branch)
    assert "2026-01-01 10:00" in json.dumps(content)


async def test_ff40_what_is_refused_leaves_the_writer_usable(
    real: RealWriter, writer: WriterStore, lease: Lease
) -> None:
    """Numbers that no column can hold are a defect of the caller, before anything is asked of the server."""
    with pytest.raises((StoreError, asyncpg.DataError)):
        await writer.append(lease, [applied(lease, 2**63)])
    await writer.append(lease, [applied(lease, 0)])
    assert await chain_is_whole(real.ledger, lease.binding_id) == 2
