"""Makes the state machine's profiles known before one is chosen on the command line."""

from __future__ import annotations

from tests.state_machine import profiles

profiles.register()
