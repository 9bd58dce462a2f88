"""The state machine for a long time, with new examples each time, on both versions in turn.

    python -m tests.state_machine.campaign MINUTES

It prints how much was tried, and ends with 1 and Hypothesis's own account of the shortest example where one failed.
"""

from __future__ import annotations

import sys
import time
import traceback

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.state_machine import profiles
from tests.state_machine.database import Database
from tests.state_machine.machine import machine_on
from tests.support.postgres import VERSIONS, PostgresServer, migrate_fully

_BATCH = 20


def main() -> int:
    """Batches of examples until the time is over."""
    profiles.register()
    chosen = settings(settings.get_profile("state-campaign"), max_examples=_BATCH, database=None)
    until = time.monotonic() + 60 * float(sys.argv[1])
    servers = [PostgresServer.start(version) for version in VERSIONS]
    examples = steps = failed = 0
    while time.monotonic() < until and not failed:
        for server in servers:
            name = server.create_database(server.template("newest", migrate_fully))
            dsns = {"admin": server.dsn(name), "writer": server.dsn(name, user="ledger_writer")}
            with Database.opened(dsns) as database:
                try:
                    run_state_machine_as_test(machine_on(database), settings=chosen)
                except BaseException:  # noqa: BLE001 - whatever ended the machine is what was looked for
                    failed += 1
                    sys.stdout.write(f"PostgreSQL {server.version}\n{traceback.format_exc()}")
                examples, steps = examples + database.examples, steps + database.steps
            server.drop_database(name)
    for server in servers:
        server.stop()
    sys.stdout.write(f"{examples} examples, {steps} steps, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
