"""The collision check of a whole plan (P61) in memory that does not grow with its objects.

An index of all objects, as :class:`ledger.plan.collision.CollisionIndex` keeps it, costs about a kilobyte for each.
Here each key is a number of eight bytes first. Only where a create's number occurs twice are the operations looked at
again, those with that number alone, and compared by their whole keys. Two keys that have one number by chance are told
apart then.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ledger.plan.collision import CollisionIndex
from ledger.plan.errors import DestinationIdentityCollisionError
from ledger.plan.model import PlannedOperation
from ledger.plan.repeats import number_array, repeated
from ledger.schema import DestinationSchema

MAX_COLLIDING: Final = 10_000
"""Operations of one plan that are compared by their whole keys and named; the number of further ones is reported."""


class CollisionSearch:
    """Takes the operations of a plan one after the other, and finds those that the destination would merge."""

    def __init__(self, schema: DestinationSchema) -> None:
        self._schema = schema
        self._index = CollisionIndex(schema)
        self._of_creates = number_array()
        self._of_others = number_array()

    def look_at(self, operation: PlannedOperation) -> None:
        """Take note of the keys of one operation."""
        numbers = self._of_creates if operation.action == "create" else self._of_others
        numbers.extend(self._index.key_numbers(operation))

    def refusals(self, operations: Iterable[PlannedOperation]) -> tuple[list[DestinationIdentityCollisionError], int]:
        """One refusal for each set of objects that holds a create, and how many operations were left out of them.

        Args:
            operations: those that were looked at, once more.
        """
        shared = self._shared()
        if not shared:
            return [], 0
        index, kept, left_out = CollisionIndex(self._schema), 0, 0
        for operation in operations:
            if shared.isdisjoint(index.key_numbers(operation)):
                continue
            if kept < MAX_COLLIDING:
                index.add_operation(operation)
                kept += 1
            else:
                left_out += 1
        return index.collisions(), left_out

    def _shared(self) -> set[int]:
        """Numbers that a create has, and another operation too."""
        every = number_array()
        every.extend(self._of_creates)
        every.extend(self._of_others)
        twice = repeated(every)
        return twice.intersection(self._of_creates) if twice else twice
