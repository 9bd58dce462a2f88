"""Two writer processes on one binding; one is frozen past its lease while the other takes over (must show 7)."""

from __future__ import annotations

import signal

import pytest

from consumers.pauses import PausePoint
from tests.faults.conftest import Content, StartWriter
from tests.faults.evidence import commit_mixed, require_sound
from tests.support.real_writer import RealWriter

pytestmark = [pytest.mark.faults, pytest.mark.integration]

POINTS = [
    (PausePoint.AFTER_CLAIM, 1),
    (PausePoint.BEFORE_GATE, 1),
    (PausePoint.BEFORE_PLAN_STORED, 1),
    (PausePoint.BEFORE_RUN_STARTED, 1),
    (PausePoint.AFTER_RUN_STARTED, 1),
    (PausePoint.BEFORE_DISPATCH, 1),
    (PausePoint.BEFORE_DISPATCH, 3),
    (PausePoint.AFTER_WRITE_BEFORE_APPEND, 2),
    (PausePoint.AFTER_APPEND, 3),
    (PausePoint.BEFORE_TERMINAL, 1),
]


@pytest.mark.rules("G2", "G3", "G5", "G7")
@pytest.mark.parametrize(("point", "occurrence"), POINTS, ids=lambda value: str(value))
async def test_g02_a_thawed_writer_appends_nothing_and_begins_no_request(
    disturbed: RealWriter, undisturbed: Content, start_writer: StartWriter, point: PausePoint, occurrence: int
) -> None:
    operations = await commit_mixed(disturbed, "run-1")
    first = start_writer("run-1", point=point, occurrence=occurrence, action="freeze", retake=False)
    await first.frozen()
    assert await start_writer("run-1").ended() == (0, "run.applied")
    position, requests = await disturbed.head(), len(disturbed.sandbox.journal)

    first.send_signal(signal.SIGCONT)
    status, word = await first.ended()
    # Frozen before it saw the order, it finds the run ended and says how; later, it is told that it lost the binding.
    assert (status, word in ("FencedWriterError", "LeaseLostError", "run.applied")) == (0, True)
    assert await disturbed.head() == position
    assert len(disturbed.sandbox.journal) == requests
    await require_sound(disturbed, "run-1", operations)
    assert disturbed.content() == undisturbed


@pytest.mark.rules("G2")
async def test_g02_of_two_writers_started_together_one_works_and_the_other_waits(
    disturbed: RealWriter, undisturbed: Content, start_writer: StartWriter
) -> None:
    operations = await commit_mixed(disturbed, "run-1")
    both = [start_writer("run-1"), start_writer("run-1")]
    endings = [await process.ended() for process in both]
    assert (0, "run.applied") in endings
    await require_sound(disturbed, "run-1", operations)
    assert disturbed.content() == undisturbed
    dispatched = [entry for entry in disturbed.sandbox.journal.entries() if entry.branch == disturbed.branch]
    assert len(dispatched) == 5
