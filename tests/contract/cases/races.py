"""Writes that overlap: what may be won, lost, or doubled."""

from __future__ import annotations

from tests.contract.cases.case import case
from tests.contract.cases.starts import a_device
from tests.contract.cases.talk import Talk, peer, values


@case("race")
def same_upsert(t: Talk) -> None:
    """Equal upserts at once: one object, every answer names it."""
    replies = t.at_once("ProbeTagUpsert", [values(name=t.name())] * 3)
    t.note("ids", len({reply.id for reply in replies if reply.ok}))
    t.find("ProbeTag", {"name__value": t.name()}, "name { value }")


@case("race")
def same_create(t: Talk) -> None:
    """Equal creates at once: one wins, the others violate uniqueness."""
    replies = t.at_once("ProbeTagCreate", [values(name=t.name())] * 3)
    t.note("won", sum(reply.ok for reply in replies))
    t.find("ProbeTag", {"name__value": t.name()}, "name { value }")


@case("race")
def same_own_id_with_a_key(t: Talk) -> None:
    """Equal creates under one id of ours, for a kind with a key: one wins."""
    own = t.new_id()
    replies = t.at_once("ProbeTagCreate", [{"id": own, **values(name=t.name())}] * 2)
    t.note("won", sum(reply.ok for reply in replies))
    t.find("ProbeTag", {"name__value": t.name()}, "name { value }")


@case("race")
def same_constraint(t: Talk) -> None:
    """Equal upserts of a kind keyed by a constraint alone."""
    device = a_device(t)
    replies = t.at_once("ProbePortUpsert", [{**values(name="p1"), "device": peer(device)}] * 2)
    t.note("won", sum(reply.ok for reply in replies))
    t.find("ProbePort", {"device__ids": [device]}, "name { value }")
