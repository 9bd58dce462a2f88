"""The state of every binding in a few numbers, for metrics."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.binding import DestinationBinding
from ledger.projections.registry import PROJECTIONS
from ledger.store.session import Session


@dataclass(frozen=True, slots=True)
class BindingState:
    """One binding.

    Attributes:
        binding: the destination.
        head_position: of the last event of its log.
        open_orders: recorded and not carried out yet.
        oldest_open_order: seconds since the oldest of them was recorded; 0 if there is none.
        checkpoint_position: of the event that records the newest checkpoint; 0 if there is none.
        checkpoint_age: seconds since that event; None if there is none.
    """

    binding: DestinationBinding
    head_position: int
    open_orders: int
    oldest_open_order: float
    checkpoint_position: int
    checkpoint_age: float | None


@dataclass(frozen=True, slots=True)
class ProjectionLag:
    """How many events of a log a projection has not taken."""

    binding: DestinationBinding
    projection: str
    events: int


class StateQueries:
    """Part of :class:`ledger.store.ledger.Ledger`."""

    _session: Session

    async def binding_states(self) -> list[BindingState]:
        """The state of each binding, oldest binding first."""
        return [
            BindingState(
                binding=DestinationBinding(url=row["url"], branch=row["branch"]),
                head_position=row["head_position"],
                open_orders=row["orders"],
                oldest_open_order=row["oldest"],
                checkpoint_position=row["checkpoint_position"],
                checkpoint_age=row["checkpoint_age"],
            )
            for row in await self._session.rows("binding_states")
        ]

    async def projection_lags(self) -> list[ProjectionLag]:
        """How far each projection of this program is behind each log."""
        names = [projection.name for projection in PROJECTIONS]
        versions = [projection.version for projection in PROJECTIONS]
        return [
            ProjectionLag(DestinationBinding(url=row["url"], branch=row["branch"]), row["projection"], row["lag"])
            for row in await self._session.rows("projection_lags", names, versions)
        ]
