"""The relay's cursor of each binding, and the process that relays it."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.store.bindings import BindingQueries


@dataclass(frozen=True, slots=True)
class RelayClaim:
    """The right to move one cursor, under one epoch. ``position`` and ``hash`` are where it stood when it was taken."""

    binding_id: int
    topic: str
    owner: str
    epoch: int
    position: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class RelayCursor:
    """A binding's head, and the last of its events that a topic is known to hold."""

    binding_id: int
    url: str
    branch: str
    head_position: int
    relayed_position: int


class RelayQueries(BindingQueries):
    """Part of :class:`ledger.store.ledger.Ledger`."""

    async def claim_relay(self, binding_id: int, topic: str, *, owner: str, ttl: float) -> RelayClaim:
        """Take the relay of a binding that is free or has run out.

        Args:
            binding_id: whose events.
            topic: where to.
            owner: a random name of this claim; asked again under it, the answer is the same.
            ttl: seconds until another process may take it, counted again by each :meth:`advance_relay`.

        Raises:
            RelayHeldError: another process relays it.
            UnknownBindingError: no such binding.
        """
        row = await self._session.row("claim_relay", binding_id, topic, owner, ttl)
        return RelayClaim(binding_id, topic, owner, row["epoch"], row["position"], row["hash"])

    async def advance_relay(self, claim: RelayClaim, *, position: int, hash_: bytes, ttl: float) -> None:
        """Note that the topic holds everything up to ``position``; the same position only prolongs the claim.

        Raises:
            RelayFencedError: another process relays this binding now; the cursor is where that one left it.
            RelayCursorError: the cursor would go back, or onto an event that this log does not have.
        """
        await self._session.value(
            "advance_relay", claim.binding_id, claim.topic, claim.owner, claim.epoch, position, hash_, ttl
        )

    async def release_relay(self, claim: RelayClaim) -> None:
        """Give the relay back, so that another process finds it free at once."""
        await self._session.value("release_relay", claim.binding_id, claim.topic, claim.owner, claim.epoch)

    async def relay_cursors(self, topic: str) -> list[RelayCursor]:
        """All bindings and how far they are on a topic, oldest first."""
        return [
            RelayCursor(row["id"], row["url"], row["branch"], row["head_position"], row["relayed_position"])
            for row in await self._session.rows("relay_cursors", topic)
        ]
