"""Who wrote which object: overlaps, last writers, the stale check; by look-ups, whatever the statistics say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ledger.store.ledger import ForeignWrite, LastWrite, Ledger
from ledger.store.sql_files import query
from ledger.store.writer import Lease, WriterStore
from tests.support.store import BINDING, TinyPlan, applied_operation, make_commit, run_applied, run_stopped, until

pytestmark = pytest.mark.integration


class History:
    """Runs of several sources on one binding."""

    def __init__(self, ledger: Ledger, writer: WriterStore, lease: Lease) -> None:
        self.ledger, self.writer, self.lease = ledger, writer, lease

    async def run(
        self, run_id: str, source: str, plan: TinyPlan, *, applied: Sequence[int] | None = None, ended: bool = True
    ) -> dict[int, int]:
        """Commit and apply a plan, or some ordinals of it; returns the position of each."""
        await plan.store(self.ledger)
        binding_id = self.lease.binding_id
        await self.ledger.submit_commit(binding_id, make_commit(run_id, plan.checksum, source=source))
        await self.ledger.store_artifact(
            binding_id=binding_id,
            run_id=run_id,
            checksum=plan.checksum,
            source=source,
            manifest=f'{{"run_id":"{run_id}"}}'.encode(),
            digest="d" * 64,
        )
        ordinals = list(range(len(plan.lines)) if applied is None else applied)
        positions: dict[int, int] = {}
        for start in range(0, len(ordinals), 500):
            batch = ordinals[start : start + 500]
            appended = await self.writer.append(
                self.lease, [applied_operation(self.lease, plan.operation_ids[n], n, run_id=run_id) for n in batch]
            )
            positions |= {n: appended.first_position + place for place, n in enumerate(batch)}
        end = run_applied if ended else run_stopped
        await self.writer.append(self.lease, [end(self.lease, run_id=run_id)])
        return positions


@pytest.fixture
def history(ledger: Ledger, writer: WriterStore, lease: Lease) -> History:
    return History(ledger, writer, lease)


@pytest.mark.rules("G3")
async def test_what_other_sources_applied_to_the_same_objects_since_a_position(
    history: History, ledger: Ledger, lease: Lease
) -> None:
    ours, theirs = TinyPlan.of(["a", "b", "c"]), TinyPlan.of(["b", "c", "x"], note="theirs")
    await history.run("ours-1", "ours", ours)
    seen = await history.run("theirs-1", "theirs", theirs, applied=[0])
    before = seen[0]
    later = await history.run("theirs-2", "theirs", TinyPlan.of(["c", "b"], note="later"), applied=[0])
    keys = ours.object_keys

    async def foreign(source: str, after: int) -> list[ForeignWrite]:
        return await ledger.foreign_writes(lease.binding_id, source=source, after_position=after, object_keys=keys)

    assert [(w.object_key, w.run_id, w.position) for w in await foreign("ours", 0)] == [
        (keys[1], "theirs-1", seen[0]),
        (keys[2], "theirs-2", later[0]),
    ]
    (write,) = await foreign("ours", before)
    assert (write.source, write.operation_id) == ("theirs", theirs.operation_ids[1])
    assert json.loads(write.line)["identity"] == {"name": "c"}
    assert write.line.endswith(b"\n")
    assert await foreign("ours", later[0]) == []
    assert {w.source for w in await foreign("theirs", 0)} == {"ours"}
    assert await ledger.foreign_writes(lease.binding_id, source="ours", after_position=0, object_keys=[]) == []


@pytest.mark.rules("G3")
async def test_only_what_was_applied_counts_as_written(history: History, ledger: Ledger, lease: Lease) -> None:
    plan = TinyPlan.of(["a", "b"])
    await history.run("theirs", "theirs", plan, applied=[1], ended=False)
    writes = await ledger.foreign_writes(
        lease.binding_id, source="ours", after_position=0, object_keys=plan.object_keys
    )
    assert [write.object_key for write in writes] == [plan.object_keys[1]]
    assert set(await ledger.last_writers(lease.binding_id, plan.object_keys)) == {plan.object_keys[1]}


async def test_the_last_writer_of_an_object_is_the_source_that_applied_last(
    history: History, ledger: Ledger, lease: Lease
) -> None:
    plan = TinyPlan.of(["a", "b"])
    first = await history.run("run-1", "one", plan)
    second = await history.run("run-2", "two", plan, applied=[1])
    expected = {
        plan.object_keys[0]: LastWrite("one", "run-1", first[0]),
        plan.object_keys[1]: LastWrite("two", "run-2", second[1]),
    }
    assert await ledger.last_writers(lease.binding_id, [*plan.object_keys, b"x" * 32]) == expected
    assert await ledger.last_writers(lease.binding_id, None) == expected
    other = await ledger.register_binding(BINDING.model_copy(update={"branch": "other"}))
    assert await ledger.last_writers(other, None) == {}
    assert await ledger.last_writers(other, plan.object_keys) == {}


@pytest.mark.rules("G7")
async def test_a_newer_apply_of_the_same_source_makes_a_plan_stale(
    history: History, ledger: Ledger, lease: Lease
) -> None:
    plan = TinyPlan.of(["a", "b"])
    positions = await history.run("run-1", "one", plan)

    async def newer(source: str, run_id: str, after: int) -> int | None:
        return await ledger.newer_apply(lease.binding_id, source=source, run_id=run_id, after_position=after)

    assert await newer("one", "run-0", 0) == positions[1]
    assert await newer("one", "run-0", positions[1]) is None
    assert await newer("one", "run-1", 0) is None, "a run is not newer than itself"
    assert await newer("two", "run-0", 0) is None, "another source does not make a plan stale"


async def test_the_last_manifest_is_that_of_the_last_run_applied_to_its_end(
    history: History, ledger: Ledger, lease: Lease
) -> None:
    assert await ledger.last_applied_manifest(lease.binding_id, "one") is None
    await history.run("run-1", "one", TinyPlan.of(["a"]))
    await history.run("run-2", "one", TinyPlan.of(["b"]))
    await history.run("run-3", "one", TinyPlan.of(["c"]), ended=False)
    await history.run("run-4", "two", TinyPlan.of(["d"]))
    assert await ledger.last_applied_manifest(lease.binding_id, "one") == b'{"run_id":"run-2"}'


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """All nodes of an explained plan."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]


@pytest.mark.parametrize("analysed", ["never", "while empty", "now"])
async def test_history_is_found_by_look_ups_whatever_the_statistics_say(
    history: History, ledger: Ledger, lease: Lease, admin: Any, analysed: str
) -> None:
    if analysed == "while empty":
        await history.run("first", "source-0", TinyPlan.of(["a"]))
        await admin.execute("vacuum analyze")
    names = [f"name {n}" for n in range(2_000)]
    for number in range(4):
        await history.run(f"run-{number}", f"source-{number % 2}", TinyPlan.of(names, note=str(number)))
    if analysed == "now":
        await admin.execute("analyze")
    keys = list(TinyPlan.of(names[:50]).object_keys)
    questions: dict[str, tuple[Any, ...]] = {
        "foreign_writes": (lease.binding_id, "source-0", 0, keys),
        "last_writers": (lease.binding_id, keys),
        "object_history": (lease.binding_id, keys[0], 2**63 - 1, 50),
        "recent_outcomes": (lease.binding_id, 4),
        "resumptions": (lease.binding_id, "run-0"),
        "newer_apply": (lease.binding_id, "source-0", "run-0", 0),
        "last_applied_manifest": (lease.binding_id, "source-0"),
    }
    await admin.execute("set enable_seqscan = off")  # as in every session of the store
    for name, arguments in questions.items():
        explained = await admin.fetchval(f"explain (analyze, format json) {query(name)}", *arguments)
        for node in nodes(json.loads(explained)[0]["Plan"]):
            if node.get("Relation Name") in {"event", "plan_operation"}:
                read = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
                assert node["Node Type"] in {"Index Scan", "Index Only Scan", "Bitmap Heap Scan"}, (name, node)
                assert read <= 4, f"{name} reads {read} rows of {node['Relation Name']} in one look-up"


@pytest.mark.parametrize("analysed", [False, True], ids=["no statistics", "statistics"])
async def test_an_append_looks_its_ids_up_however_long_the_log_is(
    history: History, ledger: Ledger, writer: WriterStore, lease: Lease, admin: Any, analysed: bool
) -> None:
    plan = TinyPlan.of([f"name {n}" for n in range(3_000)])
    for n in range(12):  # a plan is kept for the session after a few calls, made for the table of that moment
        await writer.append(lease, [applied_operation(lease, plan.operation_ids[n], n, run_id="small")])
        if analysed:
            await admin.execute("vacuum analyze ledger.event")
    await history.run("run", "source", plan)

    async def counted() -> Any:
        await admin.execute("select pg_stat_clear_snapshot()")
        return await admin.fetchrow(
            "select n_tup_ins, seq_tup_read + (select sum(idx_tup_read) from pg_stat_all_indexes i"
            " where i.relid = t.relid) as rows_read from pg_stat_all_tables t where relid = 'ledger.event'::regclass"
        )

    async def all_counted() -> bool:
        counts: int = (await counted())["n_tup_ins"]
        return counts == 1 + 12 + 1 + 3_000 + 1 + 20

    for n in range(20):
        await writer.append(lease, [applied_operation(lease, plan.operation_ids[n], n, run_id="another")])
    await writer.close()  # a session hands in what it has counted when it ends, if not before
    await ledger.close()
    await until(all_counted)
    # For each id at most the entry that follows its place in the index.
    assert (await counted())["rows_read"] < 2 * 3_035
