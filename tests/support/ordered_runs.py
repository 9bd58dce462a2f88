"""Runs whose orders came to every end that there is, recorded as a writer does.

ordered-refused  committed, refused by the gate; resumed by eve, applied
ordered-stopped  committed, stopped by bob after one operation; resumed by eve; its writer died, the order waits
ordered-dead     committed to stop where its writer dies, which it did
ordered-waits    committed, and nobody has begun
"""

from __future__ import annotations

from ledger.commit import Policy
from ledger.events import RunResumed, RunStopped
from tests.support.recorded_runs import Recorder, make_plan

REFUSED = make_plan("ordered-refused", creates=1, deletes=0)
STOPPED = make_plan("ordered-stopped", creates=3, deletes=0)
DEAD = make_plan("ordered-dead", creates=2, deletes=0)
WAITS = make_plan("ordered-waits", creates=5, deletes=0)


async def record_orders(recording: Recorder) -> None:
    """Record all of them."""
    await recording.commit(REFUSED)
    await recording.refused(REFUSED)
    await recording.ordered_to_resume(REFUSED, by="eve", reason="it is safe")
    await recording.started(REFUSED, by="eve", reason="it is safe")
    await recording.outcome(REFUSED, 0, "applied")
    await recording.ended(REFUSED, "run.applied")

    await recording.commit(STOPPED)
    await recording.started(STOPPED)
    await recording.outcome(STOPPED, 0, "applied")
    await recording.ledger.submit_stop(recording.binding_id, run_id=STOPPED.run_id, by="bob", reason="lunch")
    stopped = RunStopped(by="bob", reason="lunch", last_ordinal=0)
    await recording.event("run.stopped", stopped, STOPPED.run_id, n=0)
    await recording.ordered_to_resume(STOPPED, by="eve", reason="it is safe")
    resumed = RunResumed(by="eve", reason="it is safe", from_ordinal=1, policy=Policy())
    await recording.event("run.resumed", resumed, STOPPED.run_id, n="resume")
    await recording.crashed(STOPPED, 1, n=1, keeps_order=True)

    await recording.commit(DEAD, policy=Policy(on_crash="stop"))
    await recording.started(DEAD)
    await recording.crashed(DEAD, 0, n=0, keeps_order=False)

    await recording.commit(WAITS)
