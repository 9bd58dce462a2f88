"""Why a write waits for the one before it: what two of ours at the same moment would leave, and what they leave."""

from __future__ import annotations

import pytest

from consumers.infrahub import errors
from consumers.infrahub.sandbox.faults import FaultRule
from ledger.destination import FieldSelection, IncompleteExtractionError
from ledger.plan.model import PlannedOperation
from tests.contract.write_surface.applying import apply, observed
from tests.contract.write_surface.conftest import Lab
from tests.support.operations import create, many, update
from tests.support.waiting import until

pytestmark = pytest.mark.contract

SELECTION = FieldSelection(("name",), many=("tags",))


def retagged(site: str) -> PlannedOperation:
    return update(
        "LabSite",
        {"name": "dc1"},
        {"name": "dc1"},
        many("tags", "LabTag", {"name": "a"}, {"name": "b"}),
        destination_id=site,
    )


async def a_start(lab: Lab) -> str:
    site = create("LabSite", {"name": "dc1"}, {"name": "dc1", "asset": "1"})
    tags = [create("LabTag", {"name": name}, {"name": name}) for name in "ab"]
    return (await apply(lab, site, *tags))[0]


@pytest.mark.rules("G4")
async def test_g04_a_repeat_before_the_first_attempt_is_through_doubles_what_it_writes(lab: Lab) -> None:
    operation = retagged(await a_start(lab))
    fault = lab.sandbox.faults.add(FaultRule(hold="amid-write", kind="LabSite"))
    with pytest.raises(errors.AnswerLostError):
        await apply(lab, operation, request_timeout=3.0)
    await apply(lab, operation)
    fault.release()
    await until(lambda: _is_through(lab))
    with pytest.raises(IncompleteExtractionError, match="tags"):
        await observed(lab, "LabSite", SELECTION)


@pytest.mark.rules("G4")
async def test_g04_a_repeat_behind_the_first_attempt_leaves_what_is_planned(lab: Lab) -> None:
    operation = retagged(await a_start(lab))
    fault = lab.sandbox.faults.add(FaultRule(hold="amid-write", kind="LabSite"))
    with pytest.raises(errors.AnswerLostError):
        await apply(lab, operation, request_timeout=3.0)
    fault.release()
    await until(lambda: _is_through(lab))
    await apply(lab, operation)
    (site,) = await observed(lab, "LabSite", SELECTION)
    assert len(site.many["tags"]) == 2


def _is_through(lab: Lab) -> bool:
    """Whether the sandbox has carried out everything that it was sent."""
    return all(entry.decided_at is not None for entry in lab.sandbox.journal.entries())
