"""The objects of both sides while a plan is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.destination import PeerPointer
from ledger.errors import ApplyLedgerError
from ledger.plan.canonical import Identity, canonical_json_text
from ledger.plan.describe import object_text, value_text
from ledger.printable import visible
from producers.mapping import EntryPlan
from producers.references import PeerToken


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer by kind and identity, the form in which a plan records it (A47).

    ``text`` is the canonical text of the identity, by which peers are compared and peer lists sorted (A21).
    """

    kind: str
    identity: Identity
    text: str

    def pair(self) -> dict[str, Any]:
        """The nested ``{identity, peer_kind}`` that is in an identity."""
        return {"identity": self.identity, "peer_kind": self.kind}

    @property
    def pair_text(self) -> str:
        """The canonical text of :meth:`pair`."""
        return f'{{"identity":{self.text},"peer_kind":{canonical_json_text(self.kind)}}}'


@dataclass(slots=True)
class SourceRecord:
    """One source row selected by one mapping entry.

    ``values`` holds attributes in normal form, ``tokens`` references as the row gives them; a field that the row does
    not have is in neither (design 4.5), a reference that is null there is in ``null_references``. ``given`` tells
    how the row spelled what normal form changed. ``identity`` and ``peers`` are filled when references are resolved;
    ``referred`` are the records that stand for the peers, with the field that needs them. ``faulted`` names the fields
    whose fault is known, so that nothing else is said about their absence. ``left_out`` says why a record without a
    fault of its own is not planned.
    """

    entry: EntryPlan
    row: int
    local_id: str | None
    values: dict[str, Any] = field(default_factory=dict)
    tokens: dict[str, tuple[PeerToken, ...]] = field(default_factory=dict)
    null_references: set[str] = field(default_factory=set)
    given: dict[str, str] = field(default_factory=dict)
    identity: Identity | None = None
    identity_text: str = ""
    unidentifiable: bool = False
    peers: dict[str, tuple[Peer, ...]] = field(default_factory=dict)
    referred: list[tuple[str, SourceRecord]] = field(default_factory=list)
    faults: list[ApplyLedgerError] = field(default_factory=list)
    faulted: set[str] = field(default_factory=set)
    left_out: str = ""
    kind: str = field(init=False)
    """The destination kind: the entry's, kept here because it is asked for more often than anything else."""

    def __post_init__(self) -> None:
        self.kind = self.entry.kind

    @property
    def is_comparable(self) -> bool:
        """Whether the record has an identity whose every part is without a fault."""
        return self.identity is not None and self.faulted.isdisjoint(self.identity)

    @property
    def is_left_out(self) -> bool:
        """Whether no operation is planned for the record, for a fault of its own or because of another record."""
        return bool(self.faults or self.left_out)

    @property
    def reason(self) -> str:
        """Why the record is left out (H19)."""
        return "; ".join(str(finding) for fault in self.faults for finding in fault.findings) or self.left_out

    @property
    def label(self) -> str:
        """How a refusal names the record: kind, identity where it is known, and the row."""
        place = f"{self.entry.endpoint} row {self.row}"
        if self.local_id is not None:
            place += f", id {visible(self.local_id)}"
        named = self.kind if self.identity is None else object_text(self.kind, self.identity)
        return f"{named} ({place})"


@dataclass(slots=True)
class ObservedRecord:
    """One object of the destination: values in normal form, peers as pointers and, once resolved, by identity.

    ``identity`` stays None where a part of it is missing at the destination; such an object cannot be matched.
    """

    kind: str
    id: str
    values: Mapping[str, Any]
    one: Mapping[str, PeerPointer | None]
    many: Mapping[str, tuple[PeerPointer, ...]]
    identity: Identity | None = None
    identity_text: str = ""
    unidentified: str = ""

    @property
    def label(self) -> str:
        """How a refusal names the object."""
        named = self.kind if self.identity is None else object_text(self.kind, self.identity)
        return f"{named} (destination id {self.id})"


def given_text(value: Any) -> str:
    """A value as a row has it, with its type: what tells ``Decimal("1")`` from ``"1"`` once both are ``"1"``."""
    return f"{type(value).__name__} {value_text(value if isinstance(value, bool | int | float) else str(value))}"


def pairs_of(peers: Sequence[Peer], *, many: bool) -> tuple[Any, str]:
    """The value of a reference in an identity, and its canonical text; of one peer the pair, of many their list."""
    if not many:
        return peers[0].pair(), peers[0].pair_text
    return [peer.pair() for peer in peers], f"[{','.join([peer.pair_text for peer in peers])}]"


def identity_text(parts: Mapping[str, str]) -> str:
    """The canonical text of an identity from the canonical texts of its parts, those of peers by ``pair_text``.

    Equal for one object, and no mere joined string (FF09): it is the encoding of the identity.
    """
    return f"{{{','.join([f'{canonical_json_text(name)}:{parts[name]}' for name in sorted(parts)])}}}"
