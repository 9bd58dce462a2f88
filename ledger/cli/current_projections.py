"""Projections for commands that only show something: brought up to date where this login may do that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rich.text import Text

from ledger.cli.output import people
from ledger.store.errors import LedgerPermissionError

if TYPE_CHECKING:
    from ledger.store.embedded import Dsns
    from ledger.store.projections import ProjectionStore


@asynccontextmanager
async def current_projections(dsns: Dsns, *, tell: bool = True) -> AsyncIterator[ProjectionStore]:
    """Open them, as far as the log goes; an auditor's login reads them as they stand, and is told where they lag.

    ``tell`` is False for a caller that looks for itself whether they lag, and then reads the log.

    Raises:
        ProjectionError, StoreError: as :meth:`ledger.store.projections.ProjectionStore.catch_up`.
    """
    from ledger.store.projections import ProjectionStore

    async with await ProjectionStore.open(dsns.projector) as projections:
        try:
            await projections.catch_up()
        except LedgerPermissionError:
            behind = await projections.events_behind()
            if behind and tell:
                note = f"the last {behind:,} events are not counted here yet: this login may only read; `work`, `serve`"
                people.print(Text.assemble(("note: ", "yellow"), note, " or any command of an operator counts them"))
        yield projections
