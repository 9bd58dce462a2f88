"""``doctor``: the object store of run directories, if one is configured."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.checkup import CheckResult, failure, good
from ledger.errors import ApplyLedgerError

if TYPE_CHECKING:
    from ledger.cli.settings import Settings

_NOBODYS_RUN = "doctor/no-such-run"


async def of_store(settings: Settings) -> AsyncGenerator[CheckResult, None]:
    """Whether the bucket is there and may be read; nothing where runs are in a folder. Nothing is written."""
    store = settings.artifact_root
    if isinstance(store, Path):
        return
    subject = f"runs in {store}"
    try:
        await asyncio.to_thread(store.holds, _NOBODYS_RUN)
    except ApplyLedgerError as exc:
        yield CheckResult(subject, "bucket", failure(f"{exc.checked}: {exc.found}", exc.next_action))
    else:
        yield CheckResult(subject, "bucket", good("it exists and can be read; `commit` shows if it takes runs"))
