"""Binding, lease, inbox and append under any sequence of calls (G2, G3, G4, G7, G8, G9), on both versions."""

from __future__ import annotations

import pytest
from hypothesis.stateful import run_state_machine_as_test

from tests.state_machine import profiles
from tests.state_machine.database import Database
from tests.state_machine.machine import machine_on

pytestmark = pytest.mark.integration


@pytest.mark.rules("G2", "G3", "G4", "G7", "G8", "G9")
def test_g02_g03_g04_g07_g08_hold_after_every_call_in_any_order(ledger_dsns: dict[str, str]) -> None:
    with Database.opened(ledger_dsns) as database:
        run_state_machine_as_test(machine_on(database), settings=profiles.chosen())
