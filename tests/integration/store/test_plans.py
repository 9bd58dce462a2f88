"""Plans by content, artifacts, details: whole or not at all, exact bytes, once (G1, G8)."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from ledger.store.errors import (
    ArtifactConflictError,
    ConstraintRefusedError,
    InvalidCallError,
    PlanConflictError,
    PlanNotStoredError,
)
from ledger.store.ledger import Ledger, StoredArtifact
from tests.support.postgres_relay import relay_to
from tests.support.store import TinyPlan, connection_to

pytestmark = pytest.mark.integration

NAMES = ["prod", "\u2028 \u0085 \x0b \r", "☃"]
COVERAGE = [b'{"action":"none"}\n', '{"identity":{"name":"é"}}\n'.encode()]


@pytest.mark.rules("G1", "G8")
async def test_g08_a_plan_comes_back_byte_for_byte_and_is_its_checksum(ledger: Ledger) -> None:
    plan = TinyPlan.of(NAMES)
    await plan.store(ledger, COVERAGE)
    lines = [line async for line in ledger.stored_plan(plan.checksum)]
    stored = await ledger.plan(plan.checksum)
    assert stored is not None
    assert tuple(lines) == plan.lines
    assert hashlib.sha256(stored.body + b"".join(lines)).hexdigest() == plan.checksum
    assert (stored.operations_count, stored.coverage_count) == (3, 2)
    assert [line async for line in ledger.stored_coverage(plan.checksum)] == COVERAGE


@pytest.mark.rules("G7")
async def test_g07_a_plan_stored_again_or_by_many_at_once_is_one_plan(ledger: Ledger) -> None:
    plan = TinyPlan.of(NAMES)
    await asyncio.gather(*(plan.store(ledger, COVERAGE) for _ in range(4)))
    assert [line async for line in ledger.stored_plan(plan.checksum)] == list(plan.lines)


@pytest.mark.rules("G1", "G8")
async def test_g01_what_is_not_the_plan_that_the_checksum_names_is_refused_and_leaves_nothing(ledger: Ledger) -> None:
    plan = TinyPlan.of(NAMES)
    changed = (
        replace(plan, lines=(*plan.lines[:2], plan.lines[2].replace("☃".encode(), b"x"))),
        replace(plan, lines=plan.lines[:2], object_keys=plan.object_keys[:2]),
        replace(plan, lines=plan.lines[::-1]),
        replace(plan, body=b'{"format_version":4}'),
        replace(plan, checksum="0" * 64),
    )
    for other in changed:
        with pytest.raises(PlanConflictError):
            await other.store(ledger)
        assert await ledger.plan(other.checksum) is None
    with pytest.raises(PlanNotStoredError):
        [line async for line in ledger.stored_plan(plan.checksum)]
    await plan.store(ledger)


@pytest.mark.rules("G8")
async def test_g08_another_body_or_coverage_under_a_stored_checksum_is_an_alarm(ledger: Ledger) -> None:
    plan = TinyPlan.of(NAMES)
    await plan.store(ledger, COVERAGE)
    with pytest.raises(PlanConflictError):
        await replace(plan, body=b'{"format_version":4}').store(ledger, COVERAGE)
    for coverage in (None, COVERAGE[:1], COVERAGE[::-1]):
        with pytest.raises(PlanConflictError):
            await plan.store(ledger, coverage)


async def test_an_empty_plan_and_a_plan_without_coverage_are_stored(ledger: Ledger) -> None:
    empty = TinyPlan.of([])
    await empty.store(ledger, [])
    assert [line async for line in ledger.stored_plan(empty.checksum)] == []
    bare = TinyPlan.of(["a"])
    await bare.store(ledger)
    stored = await ledger.plan(bare.checksum)
    assert stored is not None
    assert stored.coverage_count is None
    assert [line async for line in ledger.stored_coverage(bare.checksum)] == []


async def test_a_plan_of_many_pages_comes_back_in_order(ledger: Ledger) -> None:
    plan = TinyPlan.of([f"name {n}" for n in range(10_001)])
    await plan.store(ledger)
    assert tuple([line async for line in ledger.stored_plan(plan.checksum)]) == plan.lines


async def test_lines_are_bounded_in_bytes_as_well(ledger: Ledger) -> None:
    plan = TinyPlan.of([letter * (5 * 1024 * 1024) for letter in "abc"])
    await plan.store(ledger)
    assert tuple([line async for line in ledger.stored_plan(plan.checksum)]) == plan.lines


@pytest.mark.rules("G8")
async def test_g08_a_plan_that_is_not_sealed_does_not_survive_its_transaction(ledger_dsns: dict[str, str]) -> None:
    async with connection_to(ledger_dsns["writer"]) as connection:
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await connection.execute("select ledger.open_plan_v1(sha256('x'), '{}', 0, null, null)")
        assert await connection.fetchval("select count(*) from ledger.plan") == 0


@pytest.mark.rules("G8")
async def test_g08_a_sealed_plan_takes_no_more_lines(ledger: Ledger, ledger_dsns: dict[str, str]) -> None:
    plan = TinyPlan.of(["a"])
    await plan.store(ledger)
    async with connection_to(ledger_dsns["writer"]) as connection:
        for statement in (
            "select ledger.add_plan_lines_v1($1, 1, array[E'{}\\n'], array[sha256('x')])",
            "select ledger.add_plan_coverage_v1($1, 0, array[E'{}\\n'])",
            "select ledger.seal_plan_v1($1)",
        ):
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.execute(statement, bytes.fromhex(plan.checksum))
            assert refused.value.sqlstate == "LG021"


@pytest.mark.rules("G8")
async def test_g08_sealing_counts_and_hashes_lines_and_coverage(ledger_dsns: dict[str, str]) -> None:
    plan = TinyPlan.of(["a"])
    digest = hashlib.sha256(b"{}\n").digest()
    async with connection_to(ledger_dsns["writer"]) as connection:
        for count, coverage_count, coverage_digest in ((2, 1, digest), (1, 2, digest), (1, 1, bytes(32))):
            with pytest.raises(asyncpg.PostgresError) as refused:
                async with connection.transaction():
                    checksum = bytes.fromhex(plan.checksum)
                    await connection.execute(
                        "select ledger.open_plan_v1($1, $2, $3, $4, $5)",
                        checksum,
                        plan.body.decode(),
                        count,
                        coverage_count,
                        coverage_digest,
                    )
                    await connection.execute(
                        "select ledger.add_plan_lines_v1($1, 0, $2, $3)",
                        checksum,
                        [plan.lines[0].decode()],
                        [plan.object_keys[0]],
                    )
                    await connection.execute("select ledger.add_plan_coverage_v1($1, 0, $2)", checksum, ["{}\n"])
                    await connection.execute("select ledger.seal_plan_v1($1)", checksum)
            assert refused.value.sqlstate == "LG019"


async def test_one_key_for_each_line(ledger: Ledger) -> None:
    plan = TinyPlan.of(["a", "b"])
    with pytest.raises(InvalidCallError):
        await replace(plan, object_keys=plan.object_keys[:1]).store(ledger)
    with pytest.raises(ConstraintRefusedError):
        await replace(plan, object_keys=(b"short", b"short")).store(ledger)


@pytest.mark.rules("G7")
async def test_g07_a_plan_whose_commit_is_lost_is_stored_once(ledger_dsns: dict[str, str]) -> None:
    async with (
        relay_to(ledger_dsns["writer"]) as (relay, dsn),
        await Ledger.open(dsn, connections=1, allow_unsafe_fsync=True) as ledger,
    ):
        await TinyPlan.of(["warm up"]).store(ledger)
        # begin, open, lines, seal: the next message is the commit.
        relay.arm("lose answer", after=4)
        plan = TinyPlan.of(NAMES)
        await plan.store(ledger)
        assert relay.met.is_set()
        assert relay.accepted == 2
        assert tuple([line async for line in ledger.stored_plan(plan.checksum)]) == plan.lines


@pytest.mark.rules("G1", "G7")
async def test_g01_an_artifact_is_stored_once_with_its_raw_bytes(ledger: Ledger, binding_id: int) -> None:
    plan = TinyPlan.of(["a"])
    values: dict[str, Any] = {
        "binding_id": binding_id,
        "run_id": "run",
        "checksum": plan.checksum,
        "source": "netbox",
        "manifest": b'{ "spelled": "its own way" }\xff',
        "digest": "a" * 64,
    }
    with pytest.raises(ConstraintRefusedError):
        await ledger.store_artifact(**values)
    assert await ledger.stored_artifact(binding_id, "run") is None
    await plan.store(ledger)
    await ledger.store_artifact(**values)
    await ledger.store_artifact(**values)
    stored = await ledger.stored_artifact(binding_id, "run")
    assert isinstance(stored, StoredArtifact)
    assert (stored.manifest, stored.digest, stored.checksum) == (values["manifest"], "a" * 64, plan.checksum)
    for change in ({"manifest": b"{}"}, {"digest": "b" * 64}, {"source": "other"}):
        with pytest.raises(ArtifactConflictError):
            await ledger.store_artifact(**(values | change))
    await ledger.store_artifact(**(values | {"run_id": "another run", "manifest": b"{}"}))


@pytest.mark.rules("G7")
async def test_g07_a_detail_is_found_by_its_digest_and_stored_once(ledger: Ledger) -> None:
    data = b"[" + b"1," * 200_000 + b"1]"
    digests = await asyncio.gather(*(ledger.store_detail(data) for _ in range(4)))
    assert set(digests) == {hashlib.sha256(data).hexdigest()}
    assert await ledger.detail(digests[0]) == data
    assert await ledger.detail("0" * 64) is None
