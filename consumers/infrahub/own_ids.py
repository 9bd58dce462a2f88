"""Ids that we choose for creates which the server cannot match: the same in every attempt of one operation.

A repeat after a lost answer is then recognised by the server ("already in use"), instead of making a second object or
being refused without a trace of who made the first.
"""

from __future__ import annotations

import uuid

from ledger.binding import DestinationBinding
from ledger.commit import NAMESPACE
from ledger.plan.canonical import canonical_json_bytes


def own_node_id(binding: DestinationBinding, *, run_id: str, operation_id: str) -> str:
    """UUIDv5 of url, branch, run and operation, in lower case: the server keeps other spellings as other ids."""
    place = binding.normalised()
    name = canonical_json_bytes([place.url, place.branch, run_id, operation_id])
    return str(uuid.uuid5(NAMESPACE, name.decode()))
