"""The counters of outcomes and endings count what was recorded; a part that is started again is counted by name."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from consumers.intake.errors import BrokerUnavailableError
from consumers.service import service
from consumers.service.metrics import ServiceMetrics
from consumers.service.parts import Part, run_parts
from ledger.binding import DestinationBinding
from ledger.cli import serving
from ledger.events import BODIES, NewEvent
from ledger.metrics import table

BINDING = DestinationBinding(url="http://infrahub.example", branch="main")


def _event(kind: str) -> NewEvent:
    return NewEvent(event_id=uuid.uuid4(), kind=kind, schema_version=1, body=b"{}")


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, {"url": BINDING.url, "branch": BINDING.branch, **labels})


def test_outcomes_and_endings_are_counted_by_kind_and_other_events_are_not() -> None:
    metrics = ServiceMetrics()
    count = metrics.recorder(BINDING)
    assert value(metrics.registry, "apply_ledger_runs_total", ending="interrupted") == 0
    count([_event("run.started"), _event("operation.applied"), _event("operation.applied")])
    count([_event("operation.unknown"), _event("run.interrupted")])
    found = {
        outcome: value(metrics.registry, "apply_ledger_operations_total", outcome=outcome)
        for outcome in table.OPERATION_OUTCOME.values
    }
    assert found == {"applied": 2, "skipped": 0, "failed": 0, "unknown": 1}
    assert value(metrics.registry, "apply_ledger_runs_total", ending="interrupted") == 1
    assert value(metrics.registry, "apply_ledger_runs_total", ending="applied") == 0


def test_each_outcome_and_each_ending_of_the_log_has_a_counter() -> None:
    metrics = ServiceMetrics()
    count = metrics.recorder(BINDING)
    count([_event(kind) for kind in BODIES])
    for outcome in (kind.removeprefix("operation.") for kind in BODIES if kind.startswith("operation.")):
        assert value(metrics.registry, "apply_ledger_operations_total", outcome=outcome) == 1, outcome
    endings = {kind.removeprefix("run.") for kind in BODIES if kind.startswith("run.")} - {"started", "resumed"}
    for ending in endings | {"refused"}:
        assert value(metrics.registry, "apply_ledger_runs_total", ending=ending) == 1, ending


async def test_a_part_that_is_started_again_is_counted_under_its_name() -> None:
    metrics, stop = ServiceMetrics(), asyncio.Event()
    attempts = 0

    async def run(stopped: asyncio.Event) -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise BrokerUnavailableError(checked="x", expected="y", found="z", next_action="w")
        stop.set()
        await stopped.wait()

    await run_parts([Part("relay", run)], stop, retry_wait=0, restarted=metrics.part_restarted)
    assert metrics.registry.get_sample_value("apply_ledger_part_restarts_total", {"part": "relay"}) == 2
    assert metrics.registry.get_sample_value("apply_ledger_part_restarts_total", {"part": "intake"}) == 0


@pytest.mark.parametrize("name", table.PART.values)
def test_the_name_of_each_part_is_one_that_the_code_gives(name: str) -> None:
    text = "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in (service, serving))
    assert f'Part("{name}"' in text
