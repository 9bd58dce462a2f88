"""The ledger's state in metrics: as the database says it, asked seldom, and absent instead of old."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

import pytest

from ledger.binding import DestinationBinding
from ledger.metrics import ledger_state
from ledger.metrics.declaring import Meters, Process
from ledger.metrics.ledger_state import ASK_EVERY, LedgerStateMetrics
from ledger.metrics.table import metrics_of
from ledger.store.errors import LedgerUnavailableError
from ledger.store.states import BindingState, ProjectionLag

BINDING = DestinationBinding(url="http://infrahub.example", branch="main")


@dataclass
class _Reader:
    """Answers with what it was given, or not at all."""

    states: list[BindingState]
    lags: list[ProjectionLag] = field(default_factory=list)
    asked: int = 0
    error: Exception | None = None
    gate: asyncio.Event | None = None

    async def binding_states(self) -> list[BindingState]:
        self.asked += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        return self.states

    async def projection_lags(self) -> list[ProjectionLag]:
        return self.lags


@dataclass
class _Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


STATE = BindingState(
    binding=BINDING,
    head_position=7,
    open_orders=2,
    oldest_open_order=12.5,
    checkpoint_position=5,
    checkpoint_age=60.0,
)


@dataclass
class _Shown:
    """The gauges, and the clock that they go by."""

    clock: _Clock = field(default_factory=_Clock)
    meters: Meters = field(default_factory=lambda: Meters(metrics_of(Process.SERVE)))

    def __post_init__(self) -> None:
        self.state = LedgerStateMetrics(self.meters, with_projections=True, clock=self.clock)

    def value(self, name: str, **labels: str) -> float | None:
        named = {"url": BINDING.url, "branch": BINDING.branch, **labels}
        return self.meters.registry.get_sample_value(f"apply_ledger_{name}", named)

    @property
    def up(self) -> float | None:
        return self.meters.registry.get_sample_value("apply_ledger_database_up")


async def test_every_number_of_a_binding_is_shown() -> None:
    shown = _Shown()
    await shown.state.refresh(_Reader([STATE], [ProjectionLag(BINDING, "runs", 3)]))
    names = ("head_position", "open_orders", "oldest_open_order_age_seconds", "checkpoint_position")
    assert [shown.value(name) for name in names] == [7, 2, 12.5, 5]
    assert shown.value("checkpoint_age_seconds") == 60
    assert shown.value("projection_lag_events", projection="runs") == 3
    assert shown.up == 1


async def test_without_a_checkpoint_there_is_no_age_that_could_look_young() -> None:
    shown = _Shown()
    await shown.state.refresh(_Reader([replace(STATE, checkpoint_position=0, checkpoint_age=None)]))
    assert shown.value("checkpoint_age_seconds") is None
    assert shown.value("checkpoint_position") == 0


async def test_the_database_is_asked_once_in_a_few_seconds_however_often_is_scraped() -> None:
    shown, reader = _Shown(), _Reader([STATE])
    for _ in range(3):
        await shown.state.refresh(reader)
    assert reader.asked == 1
    reader.states = [replace(STATE, head_position=8)]
    shown.clock.now += ASK_EVERY
    await shown.state.refresh(reader)
    assert (reader.asked, shown.value("head_position")) == (2, 8)


async def test_a_scrape_beside_another_waits_for_the_same_answer() -> None:
    shown, reader = _Shown(), _Reader([STATE], gate=asyncio.Event())
    both = [asyncio.create_task(shown.state.refresh(reader)) for _ in range(2)]
    await asyncio.sleep(0)
    assert reader.gate is not None
    reader.gate.set()
    await asyncio.gather(*both)
    assert (reader.asked, shown.value("head_position")) == (1, 7)


async def test_a_database_that_is_unreachable_leaves_no_old_numbers() -> None:
    shown, reader = _Shown(), _Reader([STATE], [ProjectionLag(BINDING, "runs", 3)])
    await shown.state.refresh(reader)
    reader.error = LedgerUnavailableError(checked="x", expected="y", found="z", next_action="w")
    shown.clock.now += ASK_EVERY
    await shown.state.refresh(reader)
    assert shown.up == 0
    for name in ("head_position", "open_orders", "checkpoint_position", "checkpoint_age_seconds"):
        assert shown.value(name) is None, name
    assert shown.value("projection_lag_events", projection="runs") is None
    reader.error = None
    shown.clock.now += ASK_EVERY
    await shown.state.refresh(reader)
    assert (shown.up, shown.value("head_position")) == (1, 7)


async def test_a_database_that_hangs_does_not_hang_the_scrape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_state, "ASK_WITHIN", 0.01)
    shown, reader = _Shown(), _Reader([STATE], gate=asyncio.Event())
    await shown.state.refresh(reader)
    assert (shown.up, shown.value("head_position")) == (0, None)


async def test_a_defect_is_no_unreachable_database() -> None:
    shown, reader = _Shown(), _Reader([STATE], error=ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        await shown.state.refresh(reader)
