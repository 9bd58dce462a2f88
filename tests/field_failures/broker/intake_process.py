"""An intake in a process of its own that is killed behind its Nth message: ``SETTINGS DSN N``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from consumers.intake.reading import Intake
from consumers.intake.settings import IntakeSettings
from consumers.intake.taking import MessageTaker, ReceivedMessage
from ledger.store.ledger import Ledger
from tests.support.store import BINDING


async def main(settings: IntakeSettings, dsn: str, kill_after: int) -> None:
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        taker = MessageTaker(ledger, [BINDING])
        taken = 0

        async def take(message: ReceivedMessage) -> None:
            nonlocal taken
            await taker.take(message)
            taken += 1
            if taken == kill_after:
                os.kill(os.getpid(), signal.SIGKILL)

        await Intake(settings, take).run_until(asyncio.Event())


if __name__ == "__main__":
    asyncio.run(main(IntakeSettings.model_validate_json(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
