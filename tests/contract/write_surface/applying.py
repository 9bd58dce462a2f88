"""Writing planned operations to a lab, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from consumers.infrahub.write_surface import InfrahubWriteSurface
from ledger.destination import FieldSelection, ObservedObject
from ledger.plan.model import PlannedOperation
from tests.contract.write_surface.conftest import Lab


@asynccontextmanager
async def surface_of(lab: Lab, **opening: Any) -> AsyncIterator[InfrahubWriteSurface]:
    """The write surface of a lab, opened as the writer opens it."""
    async with lab.opened(**opening) as destination:
        assert isinstance(destination.writes, InfrahubWriteSurface)
        yield destination.writes


async def apply(lab: Lab, *operations: PlannedOperation, **opening: Any) -> list[str]:
    """Write operations in one run; returns the node ids."""
    async with surface_of(lab, **opening) as surface:
        peers = surface.new_peer_resolver()
        return [await surface.apply_planned_operation(operation=operation, peers=peers) for operation in operations]


async def observed(lab: Lab, kind: str, fields: FieldSelection, **opening: Any) -> list[ObservedObject]:
    """All objects of a kind as a reader sees them."""
    async with lab.reader(**opening) as reader:
        return [item async for item in reader.read(kind, fields)]
