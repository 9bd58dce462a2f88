"""``doctor``: the source of a sync, if one is named."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from ledger.checkup import Check, CheckResult, Said, good, run_checks, warning

if TYPE_CHECKING:
    from producers.config import LoadedConfiguration
    from producers.sources import Source


async def of_source(loaded: LoadedConfiguration | None) -> AsyncGenerator[CheckResult, None]:
    """Whether the source takes its settings and has every endpoint; rows are counted where it can, and not read."""
    if loaded is None:
        return
    look = _Look(loaded)
    checks = [Check("settings", look.settings), Check("endpoints", look.endpoints, needs=("settings",))]
    async with aclosing(run_checks(f"the source of {loaded.config.name}", checks)) as found:
        async for result in found:
            yield result


class _Look:
    """The checks of one source, which is opened by the first of them."""

    def __init__(self, loaded: LoadedConfiguration) -> None:
        self._loaded = loaded
        self._opened: Source | None = None

    async def settings(self) -> Said:
        """The plug-in is there and takes the settings."""
        from producers.settings import expand_variables
        from producers.sources import location_of, open_source

        config = self._loaded.config
        self._opened = await asyncio.to_thread(
            open_source,
            config.source.name,
            settings=expand_variables(config.source.settings, os.environ),
            base_directory=self._loaded.base_directory,
        )
        return good(location_of(self._opened) or f"{config.source.name} takes them")

    async def endpoints(self) -> Said:
        """Each endpoint of the mapping is there; an empty one is worth a look, because a plan takes it for a fact."""
        names = dict.fromkeys(entry.mapping for entry in self._loaded.config.schema_mapping if entry.mapping)
        counts: Mapping[str, int | None] = {name: await asyncio.to_thread(self._count, name) for name in names}
        rows = sum(count or 0 for count in counts.values())
        told = f"{_plural(rows, 'row')} in {_plural(len(counts), 'endpoint')}"
        empty = [name for name, count in counts.items() if count == 0]
        if empty:
            return warning(
                f"no row in {', '.join(empty)}; {told}",
                "if that is not so at the source, find out why",
            )
        unknown = sum(count is None for count in counts.values())
        more = f", {unknown:,} of which do not tell how many" if unknown else ""
        return good(f"{told}{more}")

    def _count(self, endpoint: str) -> int | None:
        if self._opened is None:
            raise RuntimeError("the endpoints are looked at behind the settings")
        return self._opened.count(endpoint)


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
