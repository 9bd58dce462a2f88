"""Writes the coverage line of an unchanged resource (H6, H11).

Most resources of a plan that was applied before are such; their lines are put together from texts that exist already.
:class:`ledger.plan.coverage.CoverageLine` is the same record as it is read, and the measure of what is written here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ledger.plan.canonical import Identity, canonical_json_text
from ledger.plan.coverage import MappingEntry, Providers, coverage_fault
from ledger.plan.describe import object_text


class Selection:
    """What all lines of one kind and mapping entry have in common, encoded once.

    Args:
        kind: of the resources.
        tier: of that kind.
        entry: that selects them.
        filters: the entry's, canonical.
        providers: of both sides.
    """

    __slots__ = ("after", "before", "entry_index", "kind", "kind_text", "tier")

    def __init__(
        self,
        *,
        kind: str,
        tier: int,
        entry: MappingEntry,
        filters: Sequence[Mapping[str, Any]],
        providers: Providers,
    ) -> None:
        self.kind = kind
        self.tier = tier
        self.entry_index = entry.index
        self.kind_text = canonical_json_text(kind)
        given = f'"filters":{canonical_json_text(list(filters))},' if filters else ""
        self.before = f'"entry":{canonical_json_text(dict(entry))},{given}"identity":'
        self.after = f',"kind":{self.kind_text},"providers":{canonical_json_text(dict(providers))},"tier":{tier}}}\n'


@dataclass(frozen=True, slots=True)
class UnchangedLine:
    """One resource that is as wanted.

    Args:
        selection: the mapping entry that selected it.
        identity: canonical.
        identity_text: its canonical text.
        destination_id: of the object that was observed.

    Raises:
        CoverageInvalidError: the identity is empty, or the id is blank; the reader would refuse such a line.
    """

    selection: Selection
    identity: Identity
    identity_text: str
    destination_id: str

    def __post_init__(self) -> None:
        if not self.identity or not self.destination_id.strip():
            raise coverage_fault(
                object_text(self.kind, self.identity), "an identity and the id of its object", "one of them is empty"
            )

    @property
    def action(self) -> Literal["none"]:
        """Nothing is done."""
        return "none"

    @property
    def kind(self) -> str:
        """The kind of the resource."""
        return self.selection.kind

    @property
    def order(self) -> tuple[int, str, int]:
        """By tier, and by the identifier that an operation of this action would have (H24)."""
        digest = hashlib.sha256(f'["none",{self.selection.kind_text},{self.identity_text}]'.encode()).hexdigest()
        return self.selection.tier, f"op_{digest[:16]}", self.selection.entry_index

    @property
    def resource(self) -> bytes:
        """The object, as selected by its mapping entry."""
        return f"[{self.selection.entry_index},{self.selection.kind_text},{self.identity_text}]".encode()

    def line(self) -> bytes:
        """The canonical line with its newline."""
        selected = self.selection
        found = canonical_json_text(self.destination_id)
        return (
            f'{{"action":"none","destination_id":{found},{selected.before}{self.identity_text}{selected.after}'
        ).encode()
