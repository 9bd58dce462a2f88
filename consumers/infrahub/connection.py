"""Opens an Infrahub for one run, as a reader or as a destination, and closes it at the end of the run.

One client belongs to one event loop and to one destination, and lives no longer than the block that opened it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from consumers.infrahub.client import new_client
from consumers.infrahub.gateway import InfrahubGateway
from consumers.infrahub.known_schemas import KnownSchemas
from consumers.infrahub.reader import InfrahubReader
from consumers.infrahub.schema import fetch_schema
from consumers.infrahub.settings import InfrahubSettings
from consumers.infrahub.transport import PooledTransport, TransportFactory
from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.binding import DestinationBinding
from ledger.destination import DispatchGuard, OpenDestination
from ledger.errors import ConfigurationError

SettingsLookup = Callable[[DestinationBinding], InfrahubSettings]

__all__ = ["InfrahubOpener", "InfrahubReader", "InfrahubSettings", "KnownSchemas", "declared", "open_reader"]


class InfrahubOpener:
    """Opens declared destinations for writing; implements :class:`ledger.destination.DestinationOpener`.

    Args:
        lookup: gives the settings of a binding, aliases resolved; raises for one that is not declared.
        factory: the layer below httpx, for tests.
        known: spares fetching a schema that has not changed.
    """

    def __init__(
        self, lookup: SettingsLookup, *, factory: TransportFactory | None = None, known: KnownSchemas | None = None
    ) -> None:
        self._lookup = lookup
        self._factory = factory
        self._known = known

    def __call__(
        self, binding: DestinationBinding, *, run_id: str, guard: DispatchGuard
    ) -> AbstractAsyncContextManager[OpenDestination]:
        """Connect and fetch the schema; every request passes ``guard`` first.

        Raises:
            ConfigurationError: the binding is not declared.
            DestinationReadError: the schema could not be fetched (on entering the block).
        """
        return self._open(self._lookup(binding), run_id, guard)

    @asynccontextmanager
    async def _open(
        self, settings: InfrahubSettings, run_id: str, guard: DispatchGuard
    ) -> AsyncIterator[OpenDestination]:
        longest = settings.request_timeout
        async with _gateway(settings, guard, longest, self._factory, patience=longest) as gateway:
            schema = await fetch_schema(gateway, self._known)
            surface = InfrahubWriteSurface(gateway, schema, binding=settings.binding, run_id=run_id)
            yield OpenDestination(writes=surface, schema=schema, longest_request=longest, waits_for_guard=True)


@asynccontextmanager
async def open_reader(
    settings: InfrahubSettings, *, factory: TransportFactory | None = None, known: KnownSchemas | None = None
) -> AsyncIterator[InfrahubReader]:
    """A reader of one branch; nothing is fetched before it is asked for, and no schema that is ``known``."""
    async with _gateway(settings, _ReadingNeedsNoLease(), settings.read_timeout, factory, planning=True) as gateway:
        yield InfrahubReader(gateway, known)


@asynccontextmanager
async def open_gateway(
    settings: InfrahubSettings, *, factory: TransportFactory | None = None
) -> AsyncIterator[InfrahubGateway]:
    """The bare client of one branch, for questions that are about the server; its time-out is that of a request."""
    async with _gateway(settings, _ReadingNeedsNoLease(), settings.request_timeout, factory, planning=True) as gateway:
        yield gateway


def declared(*destinations: InfrahubSettings) -> SettingsLookup:
    """A lookup over a fixed list of destinations."""
    known = {settings.binding: settings for settings in destinations}

    def lookup(binding: DestinationBinding) -> InfrahubSettings:
        found = known.get(binding.normalised())
        if found is None:
            raise ConfigurationError(
                checked=f"the destination {binding.normalised()}",
                expected=f"one of {', '.join(sorted(map(str, known))) or 'none'}",
                found="a destination that is not declared",
                next_action="declare it, or commit the plan for a declared destination",
            )
        return found

    return lookup


class _ReadingNeedsNoLease:
    """The guard of requests that write nothing."""

    async def ready(self) -> None:
        """Nothing is marked for a read."""

    def before_send(self, *, write: bool = True) -> None:
        """Let every read go."""


@asynccontextmanager
async def _gateway(
    settings: InfrahubSettings,
    guard: DispatchGuard,
    deadline: float,
    factory: TransportFactory | None,
    *,
    planning: bool = False,
    patience: float = math.inf,
) -> AsyncIterator[InfrahubGateway]:
    transport = PooledTransport(settings, guard=guard, deadline=deadline, factory=factory)
    client = new_client(settings, transport)
    try:
        yield InfrahubGateway(client, settings, requester=transport, planning=planning, patience=patience)
    finally:
        await transport.aclose()
