"""Keeping a lease: renewals, the deadline of its holder, and appends that nobody can tear."""

from __future__ import annotations

import asyncio

import pytest

from consumers.errors import DispatchRefusedError, LeaseLostError
from consumers.lease import LeaseGuard, LeaseKeeper, suspend_clock, to_its_end
from consumers.settings import WriterSettings
from ledger.store.errors import FencedWriterError, LedgerUnavailableError, UnexpectedDatabaseError
from tests.support.memory_ledger import MemoryLedger
from tests.support.waiting import until
from tests.support.writer_bench import Bench


async def _keeper(ledger: MemoryLedger, settings: WriterSettings) -> LeaseKeeper:
    sent_at = ledger.clock()
    lease = await ledger.claim(1, owner="me", ttl=settings.lease_ttl, settle=0, body_host="here", body_process_id="me")
    return LeaseKeeper(ledger, lease, settings, claim_sent_at=sent_at, clock=ledger.clock)


def _gone() -> LedgerUnavailableError:
    return LedgerUnavailableError(checked="the ledger", expected="an answer", found="none", next_action="wait")


@pytest.mark.rules("G2")
async def test_g02_the_deadline_counts_from_before_the_claim_was_sent(bench: Bench) -> None:
    keeper = await _keeper(bench.ledger, bench.settings)
    assert keeper.deadline == bench.ledger.clock.now + 60


@pytest.mark.rules("G2")
async def test_g02_a_renewal_moves_the_deadline_from_before_it_was_sent(bench: Bench) -> None:
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.clock.now += 10
    before = bench.ledger.clock.now
    bench.ledger.renewal_takes = 7.0
    await keeper.renew()
    assert keeper.deadline == before + 60


@pytest.mark.rules("G2")
@pytest.mark.parametrize(("left", "may_send"), [(25.1, True), (24.9, False), (0.0, False), (-5.0, False)])
async def test_g02_a_request_is_begun_only_when_its_time_out_ends_before_the_deadline(
    bench: Bench, left: float, may_send: bool
) -> None:
    keeper = await _keeper(bench.ledger, bench.settings)
    guard = LeaseGuard(keeper)
    bench.ledger.clock.now = keeper.deadline - left
    if may_send:
        guard.before_send()
        assert guard.allowed == 1
    else:
        with pytest.raises(DispatchRefusedError):
            guard.before_send()
        assert guard.allowed == 0


@pytest.mark.rules("G2")
async def test_g02_the_lease_is_renewed_at_a_third_of_its_time_while_it_is_held(bench: Bench) -> None:
    bench.changes |= {"lease_ttl": 0.06, "request_timeout": 0.01, "margin": 0.0}
    keeper = await _keeper(bench.ledger, bench.settings)
    async with keeper:
        await until(lambda: bench.ledger.renewals >= 3)
    assert not keeper.is_lost
    assert bench.ledger.owner is None


@pytest.mark.rules("G2")
async def test_g02_a_fenced_renewal_is_never_tried_again(bench: Bench) -> None:
    bench.changes |= {"lease_ttl": 0.03, "request_timeout": 0.01, "margin": 0.0}
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.owner, bench.ledger.epoch = "other", 2
    async with keeper:
        await until(lambda: keeper.is_lost)
        renewals = bench.ledger.renewals
        with pytest.raises(LeaseLostError):
            await keeper.append([], in_flight=None)
        with pytest.raises(LeaseLostError):
            LeaseGuard(keeper).before_send()
    assert (renewals, bench.ledger.renewals) == (1, 1)
    assert bench.ledger.owner == "other"


@pytest.mark.rules("G2")
async def test_g02_a_ledger_that_stays_away_until_the_deadline_costs_the_lease(bench: Bench) -> None:
    bench.changes |= {"lease_ttl": 0.03, "request_timeout": 0.01, "margin": 0.0}
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.fail_renewals = _gone()
    async with keeper:
        await until(lambda: bench.ledger.renewals >= 1)
        assert not keeper.is_lost
        bench.ledger.clock.now = keeper.deadline
        await until(lambda: keeper.is_lost)


async def test_a_ledger_that_comes_back_in_time_costs_nothing(bench: Bench) -> None:
    bench.changes |= {"lease_ttl": 0.03, "request_timeout": 0.01, "margin": 0.0}
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.fail_renewals = _gone()
    async with keeper:
        await until(lambda: bench.ledger.renewals >= 1)
        bench.ledger.fail_renewals = None
        await until(lambda: bench.ledger.renewals >= 2)
        assert not keeper.is_lost


@pytest.mark.rules("G2")
async def test_g02_after_a_fenced_append_nothing_more_is_sent_to_the_ledger(bench: Bench) -> None:
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.owner, bench.ledger.epoch = "other", 2
    with pytest.raises(FencedWriterError):
        await keeper.append([], in_flight=None)
    with pytest.raises(LeaseLostError):
        await keeper.append([], in_flight=None)
    with pytest.raises(LeaseLostError):
        await keeper.make_room()


async def test_a_failed_release_does_not_hide_what_ended_the_block(bench: Bench) -> None:
    keeper = await _keeper(bench.ledger, bench.settings)
    with pytest.raises(ValueError, match="the first error"):
        async with keeper:
            bench.ledger.owner = "other"
            raise ValueError("the first error")


@pytest.mark.rules("G2")
async def test_g02_room_is_made_before_it_is_needed(bench: Bench) -> None:
    """60 s of lease, 25 s for a request: with less than 42.5 s left it is renewed, long before a request would wait."""
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.clock.now += 17
    await keeper.make_room()
    assert bench.ledger.renewals == 0
    bench.ledger.clock.now += 1
    await keeper.make_room()
    assert bench.ledger.renewals == 1


async def test_a_renewal_that_fails_early_costs_nothing(bench: Bench) -> None:
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.fail_renewals = _gone()
    bench.ledger.clock.now += 20
    await keeper.make_room()
    bench.ledger.clock.now += 16
    with pytest.raises(LeaseLostError):
        await keeper.make_room()


def test_the_clock_goes_on() -> None:
    first = suspend_clock()
    assert suspend_clock() >= first


def test_a_lease_that_is_shorter_than_a_request_is_refused(bench: Bench) -> None:
    bench.changes |= {"lease_ttl": 25.0}
    with pytest.raises(ValueError, match="lease_ttl"):
        _ = bench.settings


async def test_work_is_done_to_its_end_although_its_task_is_cancelled_twice() -> None:
    release = asyncio.Event()
    done: list[str] = []

    async def work() -> str:
        await release.wait()
        done.append("done")
        return "answer"

    task = asyncio.create_task(to_its_end(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["done"]


async def test_the_failure_of_the_work_itself_is_raised() -> None:
    async def work() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await to_its_end(work())


@pytest.mark.rules("G2")
async def test_g02_whatever_a_renewal_fails_with_it_is_asked_for_again_until_the_lease_has_run_out(
    bench: Bench,
) -> None:
    """An unforeseen state of the database must not end the renewals of an idle writer in silence."""
    bench.changes |= {"lease_ttl": 0.03, "request_timeout": 0.01, "margin": 0.0}
    keeper = await _keeper(bench.ledger, bench.settings)
    bench.ledger.fail_renewals = UnexpectedDatabaseError(
        checked="the renewal", expected="an answer", found="out of memory [53200]", next_action="look"
    )
    async with keeper:
        await until(lambda: bench.ledger.renewals == 1)
        bench.ledger.fail_renewals = None
        await until(lambda: bench.ledger.renewals > 2)
        assert not keeper.is_lost
        bench.ledger.fail_renewals = _gone()
        bench.ledger.clock.now += 60
        await until(lambda: keeper.is_lost)
