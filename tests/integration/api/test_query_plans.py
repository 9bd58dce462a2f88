"""The pages of the API cost the same at any depth: each query begins in an index, reads in its order, and stops."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ledger.store.sql_files import query, sql_folder
from tests.support.store import connection_to

pytestmark = pytest.mark.integration

PAGES = {
    "runs_page": ["inbox_by_time", "projection_document_pkey"],
    "runs_page_of_binding": ["inbox_pkey", "projection_document_pkey"],
    "run_row": ["inbox_one_commit_of_a_run", "projection_document_pkey"],
    "run_document": ["projection_document_pkey"],
    "run_end": ["event_run_mark"],
    "operations_page": ["plan_operation_pkey", "projection_document_pkey"],
    "operations_at": ["plan_operation_pkey", "projection_document_pkey"],
    "events": ["event_pkey"],
    "events_of_run": ["event_of_run"],
    "waiting_orders": ["inbox_open"],
    "orders_page": ["inbox_pkey"],
    "refused_messages_page": ["intake_refusal_by_time"],
    "api_token": ["api_token_pkey"],
    "checkpoints_page": ["event_checkpoint"],
    "newest_run_marks": ["event_run_mark"],
    "events_of_kind": ["event_by_kind"],
    "attempted_ordinals": ["event_by_kind"],
    "refusals_page": ["event_refusal_by_time"],
    "writer_openings": ["event_one_opening"],
    "orders_of_run": ["inbox_of_run"],
    "lines_of_runs": ["projection_document_pkey"],
}


async def _plan(admin: Any, name: str) -> str:
    text = query(name)
    count = max([int(number) for number in re.findall(r"\$(\d+)", text)], default=0)
    await admin.execute(f"prepare {name} as {text}")
    arguments = f"({', '.join(['null'] * count)})" if count else ""
    rows = await admin.fetch(f"explain (costs off) execute {name}{arguments}")
    return "\n".join(row[0] for row in rows)


FILL = """
insert into ledger.binding (url, branch) values ('http://infrahub.example', 'main');
insert into ledger.inbox (binding_id, inbox_id, order_id, kind, run_id, body, position, commit_id, plan_checksum,
                          artifact_digest, source)
select 1, n, gen_random_uuid(), 'commit', 'run-' || n, '{}', n, gen_random_uuid(), sha256(n::text::bytea),
       sha256('artifact'), 'netbox'
from generate_series(1, 3000) n;
insert into ledger.intake_refusal (topic, partition, "offset", digest, reason)
select 'plan-commits', 0, n, sha256('x'), 'no JSON' from generate_series(1, 3000) n;
analyze ledger.inbox, ledger.intake_refusal;
"""


@pytest.mark.parametrize("filled", [False, True], ids=["young", "filled"])
async def test_every_page_is_read_from_its_index_in_its_order(ledger_dsns: dict[str, str], filled: bool) -> None:
    """Also while the tables are young: a plan that is made then is kept, and every index looks alike (ADR 0009)."""
    async with connection_to(ledger_dsns["admin"]) as admin:
        await admin.execute(FILL if filled else "select 1")
        await admin.execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan")
        for name, indexes in PAGES.items():
            plan = await _plan(admin, name)
            for index in indexes:
                assert re.search(rf"(using|on) {index}( |$)", plan, re.MULTILINE), (name, plan)
            for table in ("event", "inbox", "plan_operation", "projection_document", "intake_refusal"):
                assert f"Seq Scan on {table}" not in plan, (name, plan)
            # A few rows cost nothing to sort, and that is what a young table is thought to have.
            assert not (filled and re.search(r"Limit\n +-> +(Incremental )?Sort", plan)), (name, plan)


EVENTS = """
insert into ledger.binding (url, branch) values ('http://infrahub.example', 'main');
insert into ledger.event (binding_id, position, event_id, kind, schema_version, run_id, operation_id, ordinal, attempt,
                          writer_epoch, recorded_at, body, prev_hash, hash)
select 1, n, gen_random_uuid(), 'operation.applied', 1, 'run-' || n / 200, 'op_' || lpad(to_hex(n), 16, '0'), n % 200,
       1, 1, clock_timestamp(), '{"duration_ms":2,"node_id":"n","note":null,"sent_ms":1}', sha256('a'),
       sha256(n::text::bytea)
from generate_series(1, 20000) n;
analyze ledger.event, ledger.binding;
"""


def _of_events() -> list[str]:
    """Every named query that reads the log, so that one that is added is looked at too."""
    files = sorted((sql_folder() / "queries").glob("*.sql"))
    blocks = [block for file in files for block in file.read_text(encoding="utf-8").split("-- name: ")[1:]]
    return [block.split("\n", 1)[0] for block in blocks if re.search(r"\bledger\.event\b", block)]


async def test_no_query_goes_through_the_whole_log(ledger_dsns: dict[str, str]) -> None:
    """With the planner free to choose, on a log that is long enough to make a scan of it dear."""
    names = _of_events()
    assert {"events", "hashed_events", "object_history", "recent_outcomes", "run_end"} <= set(names)
    async with connection_to(ledger_dsns["admin"]) as admin:
        await admin.execute(EVENTS)
        await admin.execute("set plan_cache_mode = force_generic_plan")
        for name in names:
            plan = await _plan(admin, name)
            assert "Seq Scan on event" not in plan, (name, plan)
