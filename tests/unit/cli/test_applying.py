"""Waiting for a run: as its writer, beside another one, and after the lease was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from consumers import errors as writer_errors
from consumers.errors import DispatchRefusedError, LeaseLostError
from consumers.infrahub.errors import DestinationReadError
from ledger.binding import DestinationBinding
from ledger.cli import applying
from ledger.cli.run_display import ALLOWING, next_commands, show_result
from ledger.cli.run_results import RunResult
from ledger.errors import ApplyLedgerError, Finding
from ledger.store.errors import EpochMovedError, FencedWriterError, LeaseHeldError, LedgerPermissionError
from tests.support.run_documents import run_document

BINDING = DestinationBinding(url="http://one.example:8000", branch="main")


@dataclass
class _Row:
    id: int = 1


@dataclass
class _Order:
    run_id: str
    kind: str = "commit"


@dataclass
class _Event:
    position: int
    operation_id: str | None


@dataclass
class _Ledger:
    """As much of a ledger as waiting reads."""

    orders: list[_Order]
    log: list[_Event] = field(default_factory=list)
    read: list[int] = field(default_factory=list)

    async def binding(self, binding: DestinationBinding) -> _Row:
        return _Row()

    async def open_orders(self, binding_id: int) -> list[_Order]:
        return self.orders

    async def events(self, binding_id: int, *, after: int, run_id: str) -> AsyncIterator[_Event]:
        for event in self.log:
            if event.position > after:
                self.read.append(event.position)
                yield event


@dataclass
class _Writer:
    """Raises what it is told to, one after the other, then carries the run out."""

    failures: list[ApplyLedgerError]
    drained: int = 0

    async def drain(self, run_id: str, **signals: object) -> None:
        self.drained += 1
        if self.failures:
            raise self.failures.pop(0)


def _of(kind: type[ApplyLedgerError]) -> ApplyLedgerError:
    return kind(checked="the lease", expected="held", found="another process", next_action="wait")


async def _wait(monkeypatch: pytest.MonkeyPatch, writer: _Writer, orders: list[_Order]) -> None:
    monkeypatch.setattr(applying, "WATCH_EVERY", 0.0)
    ends = applying._Ends(asyncio.Event(), asyncio.Event())
    ledger: Any = _Ledger(orders)
    client: Any = writer
    await applying._write_or_watch(client, ledger, BINDING, "run-1", "ada", ends, lambda *_: None)


@pytest.mark.rules("G2")
@pytest.mark.parametrize(
    "lost", [LeaseHeldError, EpochMovedError, FencedWriterError, LeaseLostError, DispatchRefusedError]
)
async def test_g02_a_command_that_lost_the_lease_goes_on_waiting_for_its_run(
    monkeypatch: pytest.MonkeyPatch, lost: type[ApplyLedgerError]
) -> None:
    writer = _Writer([_of(lost), _of(LeaseHeldError)])
    await _wait(monkeypatch, writer, [_Order("run-1")])
    assert writer.drained == 3


async def test_what_waiting_cannot_cure_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = _Writer([_of(LedgerPermissionError)])
    with pytest.raises(LedgerPermissionError):
        await _wait(monkeypatch, writer, [_Order("run-1")])


@pytest.mark.parametrize("orders", [[], [_Order("run-2")], [_Order("run-1", "stop")]])
async def test_a_run_that_nothing_is_ordered_for_is_over(monkeypatch: pytest.MonkeyPatch, orders: list[_Order]) -> None:
    writer = _Writer([_of(LeaseHeldError)])
    await _wait(monkeypatch, writer, orders)
    assert writer.drained == 1


async def test_watching_reads_each_event_once_and_counts_each_operation_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second attempt at an operation is no second operation."""
    monkeypatch.setattr(applying, "WATCH_EVERY", 0.0)
    ledger = _Ledger([_Order("run-1")], [_Event(1, None), _Event(2, "a")])
    later = {1: [_Event(3, "a"), _Event(4, "b")], 2: []}
    counts: list[int] = []
    phases: set[str] = set()
    writer = _Writer([_of(LeaseHeldError) for _ in range(3)])

    def report(phase: str, done: int, total: int | None) -> None:
        counts.append(done)
        phases.add(phase)
        ledger.log += later.get(len(counts), [])

    ends = applying._Ends(asyncio.Event(), asyncio.Event())
    client: Any = writer
    source: Any = ledger
    await applying._write_or_watch(client, source, BINDING, "run-1", "ada", ends, report)
    assert counts == [1, 2, 2]
    assert phases == {"followed"}  # what another process does is no part of the rate of this one
    assert ledger.read == [1, 2, 3, 4]


async def test_who_holds_the_lease_is_told_once_and_not_with_every_look(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = {"host": "there", "since": "2026-11-29T18:00:00+00:00"}
    held: list[ApplyLedgerError] = [
        LeaseHeldError(
            checked="the claim",
            expected="a free lease",
            found=f"held for {seconds} s",
            next_action="wait",
            facts={**facts, "seconds": seconds},
        )
        for seconds in (3.0, 2.5, 2.0)
    ]
    await _wait(monkeypatch, _Writer(held), [_Order("run-1")])
    (told,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("waiting")]
    assert "there, since 2026-11-29T18:00:00" in told
    assert "its lease runs out in 3 s" in told


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("state", "resumable", "plannable"),
    [("failed", True, True), ("refused", True, True), ("stopped", True, False), ("applied", False, False)],
)
def test_g11_what_comes_next_leaves_open_what_only_a_person_can_tell(
    capsys: pytest.CaptureFixture[str], state: str, resumable: bool, plannable: bool
) -> None:
    result = RunResult(document=run_document(state=state), findings=[])
    show_result(result, "tags/r", table=False)
    told = capsys.readouterr().err
    assert ("apply-ledger resume tags/r --reason" in told) == resumable
    assert ("apply-ledger plan --config-file FILE" in told) == plannable


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("name", "advice", "told"),
    [
        ("StalePlanError", "…", ["fresh", "resume tags/r --reason TEXT --allow-stale"]),
        ("OverlapRefusedError", "…", ["fresh", "resume tags/r --reason TEXT --on-overlap warn"]),
        ("DestinationBindingMismatchError", "…", ["fresh", "resume tags/r --reason TEXT --allow-destination-change"]),
        ("DestinationReadError", "give a valid token", ["resume tags/r --reason TEXT", "fresh"]),
        ("ArtifactLocationError", "make a fresh plan", ["fresh", "resume tags/r --reason TEXT"]),
    ],
)
def test_g11_a_refused_run_is_resumed_with_what_lifts_its_refusal_and_what_it_advises_comes_first(
    name: str, advice: str, told: list[str]
) -> None:
    assert issubclass(getattr(writer_errors, name, DestinationReadError), ApplyLedgerError)
    finding = Finding(name=name, checked="it", expected="one", found="another", next_action=advice)
    result = RunResult(document=run_document(state="refused"), findings=[finding])
    named = [
        command.split("   ")[0].removeprefix("apply-ledger ") for command in next_commands(result, "tags/r", "fresh")
    ]
    assert named == told
    assert ALLOWING.keys() <= vars(writer_errors).keys()


def test_a_run_that_waits_is_carried_out_by_who_is_there_or_else_by_a_command() -> None:
    waits = {"open_orders": [{"kind": "resume", "by": "ana", "reason": "", "received_at": "2026-11-30T03:00:00"}]}
    for state, changes in (("open", {}), ("stopped", waits), ("interrupted", waits)):
        alone = RunResult(document=run_document(state=state, **changes), findings=[])
        assert [line.split()[1] for line in next_commands(alone, "tags/r", "fresh")] == ["work", "apply"]
        served = RunResult(document=run_document(state=state, served=True, **changes), findings=[])
        assert next_commands(served, "tags/r", "fresh") == ["apply-ledger runs show tags/r"]
    applied = RunResult(document=run_document(state="applied", **waits), findings=[])
    assert [line.split()[1] for line in next_commands(applied, "tags/r", "fresh")] == ["replay"]


def test_a_wait_is_told_once_and_again_only_when_it_ends_later() -> None:
    now = 100.0
    waits = applying.NewWaits(lambda: now)
    told = []
    for passed, seconds in ((0, 30.0), (1, 29.0), (1, 28.0), (20, 30.0), (1, 29.0), (40, 0.0), (1, 2.0)):
        now += passed
        told.append(waits.is_new(seconds))
    assert told == [True, False, False, True, False, False, True]
