"""Sharing bindings evenly: who takes a free one, who gives one up, and that nothing changes hands without end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from consumers.sharing import Share, SharingTimes
from ledger.binding import DestinationBinding
from ledger.store.errors import LedgerUnavailableError
from ledger.store.records import BindingRow
from ledger.store.workers import OtherWorker
from tests.support.waiting import until

BINDINGS = [DestinationBinding(url="http://infrahub.example:8000", branch=f"b{number}") for number in range(4)]
TIMES = SharingTimes(beat_interval=1.0, beat_ttl=5.0, grace=4.0, keep_returned=300.0)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def share(clock: Clock | None = None) -> Share:
    return Share(BINDINGS, TIMES, clock=clock or Clock())


def other(held: int, *serves: DestinationBinding) -> OtherWorker:
    return OtherWorker("other", frozenset(map(str, serves or BINDINGS)), held)


@contextmanager
def holding(mine: Share, count: int) -> Iterator[None]:
    with ExitStack() as stack:
        for binding in BINDINGS[:count]:
            stack.enter_context(mine.holding(binding))
        yield


def test_nothing_is_claimed_before_the_others_were_asked_for() -> None:
    mine = share()
    assert not mine.may_claim(BINDINGS[0])
    mine.hear([])
    assert mine.may_claim(BINDINGS[0])


def test_a_free_binding_is_left_to_whoever_holds_fewer_and_then_taken_by_any() -> None:
    clock = Clock()
    mine = share(clock)
    with holding(mine, 2):
        mine.hear([other(1)])
        assert not mine.may_claim(BINDINGS[3])
        clock.now += TIMES.grace - 0.1
        assert not mine.may_claim(BINDINGS[3])
        clock.now += 0.2
        assert mine.may_claim(BINDINGS[3])
        mine.hear([other(2)])
        assert mine.may_claim(BINDINGS[2])
        mine.hear([other(0, BINDINGS[0])])
        assert mine.may_claim(BINDINGS[2]), "one that does not serve it is no reason to wait"


@pytest.mark.parametrize(("held", "others", "yields"), [(3, 1, True), (2, 1, False), (4, 4, False), (2, 0, True)])
def test_a_binding_is_given_up_only_for_one_that_holds_two_fewer(held: int, others: int, yields: bool) -> None:
    mine = share()
    with holding(mine, held):
        mine.hear([other(others)])
        assert mine.must_yield(BINDINGS[0]) is yields


def test_one_binding_is_given_up_between_two_words_of_the_others() -> None:
    mine = share()
    with holding(mine, 4):
        mine.hear([other(0)])
        assert [mine.must_yield(binding) for binding in BINDINGS] == [True, False, False, False]
        mine.hear([other(0)])
        assert mine.must_yield(BINDINGS[1])


def test_a_binding_that_nobody_took_is_kept_so_that_it_does_not_change_hands_without_end() -> None:
    clock = Clock()
    mine = share(clock)
    with holding(mine, 2):
        mine.hear([other(0)])
        assert mine.must_yield(BINDINGS[0])
    with holding(mine, 2):  # it came back
        mine.hear([other(0)])
        assert not mine.must_yield(BINDINGS[0])
        clock.now += TIMES.keep_returned + 1
        mine.hear([other(0)])
        assert mine.must_yield(BINDINGS[0])


def test_a_lease_that_was_heard_of_is_not_tried_for_until_it_has_run_out_or_was_given_back() -> None:
    clock = Clock()
    mine = share(clock)
    row = BindingRow(
        id=1,
        url=BINDINGS[0].url,
        branch=BINDINGS[0].branch,
        head_position=0,
        head_hash=bytes(32),
        writer_epoch=1,
        lease_owner="another",
        lease_host="host",
        lease_taken_at=None,
        lease_expires_in=60.0,
        in_flight=None,
        quiet_for=0.0,
    )
    mine.hear([], [row])
    assert (mine.may_claim(BINDINGS[0]), mine.may_claim(BINDINGS[1])) == (False, True)
    clock.now += 60.0
    assert mine.may_claim(BINDINGS[0])
    mine.hear([], [row])
    assert not mine.may_claim(BINDINGS[0])
    mine.hear([], [])
    assert mine.may_claim(BINDINGS[0])


async def test_a_ledger_that_is_away_costs_evenness_and_nothing_else() -> None:
    class Away:
        beats = 0

        async def worker_beat(self, worker_id: str, **_: object) -> list[OtherWorker]:
            self.beats += 1
            raise LedgerUnavailableError(checked="ledger", expected="an answer", found="none", next_action="wait")

        async def bindings(self) -> list[BindingRow]:
            raise AssertionError("nobody answers")

        async def worker_gone(self, worker_id: str) -> None:
            raise LedgerUnavailableError(checked="ledger", expected="an answer", found="none", next_action="wait")

    register, stop = Away(), asyncio.Event()
    mine = Share(BINDINGS, TIMES.model_copy(update={"beat_interval": 0.001}))
    task = asyncio.create_task(mine.run_until(register, stop))
    await until(lambda: register.beats > 1)
    assert mine.heard_at is None
    with holding(mine, 2):
        assert mine.may_claim(BINDINGS[2])
        assert not mine.must_yield(BINDINGS[0])
    stop.set()
    await task
