"""The numbers that metrics show of a real ledger, on both versions, and what they cost it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consumers.service.metrics import ServiceMetrics
from consumers.service.sampling import SampledLedger
from ledger.audit.publish import publish_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.binding import DestinationBinding
from ledger.projections.registry import PROJECTIONS
from ledger.store.ledger import Ledger
from ledger.store.projections import ProjectionStore
from ledger.store.sql_files import query
from tests.support.api import served
from tests.support.recorded_runs import BINDING, make_plan, recorder
from tests.support.store import connection_to

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
OTHER = DestinationBinding(url="http://infrahub.example", branch="other")


async def test_the_state_is_that_of_the_ledger(ledger_dsns: dict[str, str]) -> None:
    async with recorder(ledger_dsns) as recording:
        ledger = recording.ledger
        await ledger.register_binding(OTHER)
        await recording.whole_run(make_plan("run-1"))
        await recording.commit(make_plan("run-2", creates=1), store=False)
        first, second = await ledger.binding_states()
        row = await ledger.binding(BINDING)
        assert row is not None
        assert (first.binding, first.head_position, first.open_orders) == (BINDING, row.head_position, 1)
        assert 0 < first.oldest_open_order < 60
        assert (first.checkpoint_position, first.checkpoint_age) == (0, None)
        assert (second.binding, second.head_position, second.open_orders, second.oldest_open_order) == (OTHER, 0, 0, 0)

        published = await publish_checkpoint(ledger, row, (KEY,))
        [signed, _] = await ledger.binding_states()
        assert signed.checkpoint_position == published.event_position == signed.head_position
        assert signed.checkpoint_age is not None
        assert 0 <= signed.checkpoint_age < 60


async def test_the_lag_of_a_projection_is_what_it_has_not_taken(ledger_dsns: dict[str, str]) -> None:
    async with recorder(ledger_dsns) as recording:
        await recording.whole_run(make_plan("run-1"))
        [state] = await recording.ledger.binding_states()
        lags = await recording.ledger.projection_lags()
        assert {lag.projection: lag.events for lag in lags} == {p.name: state.head_position for p in PROJECTIONS}
        async with await ProjectionStore.open(ledger_dsns["projector"], allow_unsafe_fsync=True) as projections:
            await projections.catch_up()
        await recording.commit(make_plan("run-2", creates=1), store=False)
        assert {lag.events for lag in await recording.ledger.projection_lags()} == {1}


FILL = """
insert into ledger.binding (url, branch) select 'http://infrahub.example', 'branch-' || n from generate_series(1, 50) n;
insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position, state, closed_at)
select 1, n, gen_random_uuid(), 'resume', 'run-' || n, '{}', n, 'done', clock_timestamp()
from generate_series(1, 3000) n;
insert into ledger.event (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal, attempt,
                          writer_epoch, recorded_at, body, prev_hash, hash)
select 1, n, gen_random_uuid(), 'operation.applied', 1, 'run-1', 'op_' || n, n, 1, 1, clock_timestamp(), '{}',
       sha256('a'), sha256(n::text::bytea)
from generate_series(1, 20000) n;
analyze ledger.event, ledger.binding, ledger.inbox;
"""


@pytest.mark.parametrize("filled", [False, True], ids=["young", "filled"])
async def test_the_state_is_read_from_indexes_of_what_is_open_and_of_checkpoints(
    ledger_dsns: dict[str, str], filled: bool
) -> None:
    async with connection_to(ledger_dsns["admin"]) as admin:
        await admin.execute(FILL if filled else "select 1")
        await admin.execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan")
        await admin.execute(f"prepare states as {query('binding_states')}")
        plan = "\n".join(row[0] for row in await admin.fetch("explain (analyze, costs off, buffers) execute states"))
    for index in ("inbox_open", "event_checkpoint"):
        assert re.search(rf"using {index}( |$)", plan, re.MULTILINE), plan
    for table in ("event", "inbox"):
        assert f"Seq Scan on {table}" not in plan, plan
    if filled:
        # 20,000 events and 3,000 closed orders stand in their tables; the answer is made from a page or two for each
        # of the fifty bindings
        shared = re.search(r"Buffers: shared (?:hit=(\d+))?(?: ?read=(\d+))?", plan)
        assert shared is not None, plan
        assert sum(int(pages or 0) for pages in shared.groups()) < 400, plan


async def test_a_process_shows_the_state_and_a_database_that_is_unreachable(ledger_dsns: dict[str, str]) -> None:
    async with recorder(ledger_dsns) as recording:
        await recording.whole_run(make_plan("run-1"))
        metrics = ServiceMetrics()
        async with SampledLedger(ledger_dsns["reader"], allow_unsafe_fsync=True) as sampled:
            await sampled.refresh(metrics.ledger_state)
        row = await recording.ledger.binding(BINDING)
        assert row is not None
        names = {"url": BINDING.url, "branch": BINDING.branch}
        assert metrics.registry.get_sample_value("apply_ledger_head_position", names) == row.head_position
        assert metrics.registry.get_sample_value("apply_ledger_database_up") == 1
    elsewhere = ServiceMetrics()
    nowhere = "postgresql://nobody@127.0.0.1:1/nothing"
    async with SampledLedger(nowhere) as sampled:
        await sampled.refresh(elsewhere.ledger_state)
    assert elsewhere.registry.get_sample_value("apply_ledger_database_up") == 0


async def test_the_api_shows_the_state_with_the_lag_of_projections(postgres18_ledger_dsns: dict[str, str]) -> None:
    async with recorder(postgres18_ledger_dsns) as recording:
        await recording.whole_run(make_plan("run-1"))
        async with served(postgres18_ledger_dsns) as api, api.client() as client:
            shown = (await client.get("/metrics")).text
        row = await recording.ledger.binding(BINDING)
    assert row is not None
    names = f'branch="{BINDING.branch}",url="{BINDING.url}"'
    assert f"apply_ledger_head_position{{{names}}} {float(row.head_position)}" in shown
    for projection in PROJECTIONS:
        assert f'apply_ledger_projection_lag_events{{branch="{BINDING.branch}",projection="{projection.name}"' in shown
    assert "apply_ledger_database_up 1.0" in shown


async def test_a_role_that_may_only_read_can_ask(ledger_dsns: dict[str, str]) -> None:
    async with await Ledger.open(ledger_dsns["reader"], allow_unsafe_fsync=True) as ledger:
        assert await ledger.binding_states() == []
        assert await ledger.projection_lags() == []


async def test_the_sizes_of_the_tables_can_be_asked_with_the_file_of_the_page(ledger_dsns: dict[str, str]) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "deploy" / "sizes.sql").read_text(encoding="utf-8")
    async with connection_to(ledger_dsns["admin"]) as admin:
        tables = await admin.fetch("select tablename from pg_tables where schemaname = 'ledger'")
    async with connection_to(ledger_dsns["reader"]) as reader:
        rows = await reader.fetch(text)
    assert {row["table"] for row in rows} == {table["tablename"] for table in tables}
    assert [row["bytes"] for row in rows] == sorted((row["bytes"] for row in rows), reverse=True)
    assert all(row["bytes"] > 0 for row in rows)
