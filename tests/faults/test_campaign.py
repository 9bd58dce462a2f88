"""A short crash campaign; the long one is ``make faults N=500``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.campaign.runner import run_campaign

EPISODES, SEED, LANES = 25, 20261129, 4


@pytest.mark.faults
@pytest.mark.integration
@pytest.mark.timeout(900)  # the machine may be slow; nothing here is decided by time
@pytest.mark.rules("G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8")
async def test_g04_no_guarantee_gives_way_in_a_campaign_of_crashes(tmp_path: Path) -> None:
    report = await run_campaign(range(EPISODES), seed=SEED, lanes=LANES, folder=tmp_path / "campaign")
    print("\n".join(report.lines()))
    assert report.violations == []
    assert len(report.episodes) == EPISODES
    # A campaign that never strikes where it hurts would show nothing.
    assert report.killed_in_flight > 0
    assert report.counts["take-overs of an operation in flight"] > 0
    assert report.counts["database: kill all"] + report.counts["database: kill postmaster"] > 0
    assert report.phases("frozen_in").total() > 0
