"""The stores in which references are looked up: the source's records, and the destination's for constant peers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger.plan.canonical import Identity
from producers.destination_side import DestinationSide
from producers.errors import PeerLeftOutError, UnresolvedReferenceError
from producers.mapping import FieldPlan, MappingPlan
from producers.records import ObservedRecord, Peer, SourceRecord
from producers.references import LocalId, PeerToken, UniqueId


class PeerIndex:
    """Finds peers. ``constants`` collects those that only the destination has, with the field that refers to them."""

    def __init__(self, records: Sequence[SourceRecord], mapping: MappingPlan, destination: DestinationSide) -> None:
        self.mapping = mapping
        self.constants: dict[tuple[str, str], str] = {}
        self._destination = destination
        self._by_local_id: dict[tuple[str, str], list[SourceRecord]] = {}
        self._by_identity: dict[tuple[str, str], list[SourceRecord]] = {}
        self._by_unique_id: dict[tuple[str, str], list[SourceRecord]] = {}
        self._without_unique_id: list[SourceRecord] = []
        self._meant: dict[str, tuple[str, ...]] = {}
        self._observed_by_unique_id: dict[str, dict[str, list[ObservedRecord]]] = {}
        for record in records:
            if record.local_id is not None:
                self._by_local_id.setdefault((record.kind, record.local_id), []).append(record)

    def add_identified(self, record: SourceRecord) -> None:
        """Make a record findable by its identity, once it has one."""
        if record.identity is not None:
            self._by_identity.setdefault((record.kind, record.identity_text), []).append(record)
            self._without_unique_id.append(record)

    def same_identity(self, kind: str, text: str) -> list[SourceRecord]:
        """The records of a kind with that identity."""
        return self._by_identity.get((kind, text), [])

    def unique_id(self, kind: str, identity: Identity) -> str:
        """The text under which people write an identity in a reference: its parts in identifier order, joined.

        It serves look-ups of texts that a file or row holds: several hits are refused, and it is never split (FF09).
        """
        return "__".join(self._part_text(identity[name]) for name in self.mapping.identity_fields(kind))

    def _with_unique_id(self, kind: str, text: str) -> Sequence[SourceRecord]:
        """The records of that unique id, as far as they have an identity by now.

        The texts are made when one is asked for: many sources refer by keys of rows alone.
        """
        for record in self._without_unique_id:
            if record.identity is not None:
                unique = self.unique_id(record.kind, record.identity)
                self._by_unique_id.setdefault((record.kind, unique), []).append(record)
        self._without_unique_id.clear()
        return self._by_unique_id.get((kind, text), ())

    def _part_text(self, value: Any) -> str:
        if isinstance(value, dict) and set(value) == {"identity", "peer_kind"}:
            return self.unique_id(value["peer_kind"], value["identity"])
        return str(value)

    def candidates(self, kind: str, field: FieldPlan) -> tuple[str, ...]:
        """The kinds that any entry of ``kind`` declares for this field (A49)."""
        return self.mapping.kinds[kind].candidates[field.name]

    def source_hit(self, record: SourceRecord, field: FieldPlan, token: PeerToken) -> Peer | None:
        """A source object, or for a constant a destination object, that a unique id names, as far as known by now."""
        for kind in self.candidates(record.kind, field):
            for hit in self._with_unique_id(kind, token.text):
                if hit.identity is not None:
                    return Peer(kind, hit.identity, hit.identity_text)
        if field.is_constant_peer:
            for kind in self.candidates(record.kind, field):
                for observed in self._observed(kind, token.text):
                    if observed.identity is not None:
                        return Peer(kind, observed.identity, observed.identity_text)
        return None

    def identifying_peer(self, record: SourceRecord, field: FieldPlan, token: PeerToken) -> Peer | None:
        """The peer for an identity while identities are being found; None where it has none yet.

        Raises:
            UnresolvedReferenceError: the key is no row's of the source, or several rows'.
            PeerLeftOutError: the row that is meant will never have an identity.
        """
        if isinstance(token, UniqueId):
            return self.source_hit(record, field, token)
        peer = self._row(record, field, token)
        if peer.unidentifiable:
            raise peer_left_out(record, field.name, peer)
        return None if peer.identity is None else Peer(peer.kind, peer.identity, peer.identity_text)

    def probe(
        self, record: SourceRecord, field: FieldPlan, candidates: Sequence[str], token: PeerToken
    ) -> tuple[Peer, list[SourceRecord]]:
        """The one peer that a reference means, and the source records that stand for it.

        The peer's kind is what the probe hits, never what the field's reference says; there is no fallback (A49, A51).

        Raises:
            UnresolvedReferenceError: no candidate kind has the object, or several have (A50).
            PeerLeftOutError: the row that is meant has no identity.
        """
        if isinstance(token, LocalId):
            row = self._row(record, field, token)
            if row.identity is None:
                raise peer_left_out(record, field.name, row)
            groups = [self.same_identity(kind, row.identity_text) for kind in candidates]
        else:
            groups = [group for kind in candidates for group in self._by_text(kind, token.text)]
        hits = [group for group in groups if group]
        if not hits and field.is_constant_peer:
            return self._constant(record, field, candidates, token), []
        first = hits[0][0] if len(hits) == 1 else None
        if first is None or first.identity is None:
            raise self.unresolved(record, field, candidates, token, [group[0].label for group in hits])
        return Peer(first.kind, first.identity, first.identity_text), hits[0]

    def _by_text(self, kind: str, text: str) -> list[list[SourceRecord]]:
        """Records whose joined unique id is ``text``, one group for each identity: joined texts can clash (FF09)."""
        groups: dict[str, list[SourceRecord]] = {}
        for record in self._with_unique_id(kind, text):
            groups.setdefault(record.identity_text, []).append(record)
        return list(groups.values())

    def _constant(self, record: SourceRecord, field: FieldPlan, candidates: Sequence[str], token: PeerToken) -> Peer:
        hits = [item for kind in candidates for item in self._observed(kind, token.text)]
        if len(hits) != 1 or hits[0].identity is None:
            raise self.unresolved(record, field, candidates, token, [item.label for item in hits], constant=True)
        self.constants.setdefault((hits[0].kind, hits[0].identity_text), f"{record.kind}.{field.name}")
        return Peer(hits[0].kind, hits[0].identity, hits[0].identity_text)

    def _observed(self, kind: str, text: str) -> list[ObservedRecord]:
        index = self._observed_by_unique_id.get(kind)
        if index is None:
            index = self._observed_by_unique_id[kind] = {}
            for item in self._destination.records(kind):
                if item.identity is not None:
                    index.setdefault(self.unique_id(kind, item.identity), []).append(item)
        return index.get(text, [])

    def _row(self, record: SourceRecord, field: FieldPlan, token: PeerToken) -> SourceRecord:
        """The one row that a source key means, among the kinds that this entry's reference may be."""
        reference = field.reference or ""
        kinds = self._meant.get(reference)
        if kinds is None:
            kinds = self._meant[reference] = self.mapping.schema.concrete_kinds(reference) or (reference,)
        hits = [hit for kind in kinds for hit in self._by_local_id.get((kind, token.text), ())]
        if len(hits) != 1:
            raise self.unresolved(
                record, field, self.candidates(record.kind, field), token, [hit.label for hit in hits]
            )
        return hits[0]

    def unresolved(
        self,
        record: SourceRecord,
        field: FieldPlan,
        candidates: Sequence[str],
        token: PeerToken,
        hits: Sequence[str],
        *,
        constant: bool = False,
    ) -> UnresolvedReferenceError:
        """The refusal of A50: owning kind, field, unique id and the candidates that were tried."""
        what = "source key" if isinstance(token, LocalId) else "unique id"
        where = "the source or at the destination" if constant else "the source"
        kinds = " or ".join(candidates)
        if hits:
            found, next_action = " and ".join(hits), "map the peers so that one identity means one object"
        elif constant or any(kind in self.mapping.kinds for kind in candidates):
            found = "none: not in the data, or left out by a filter"
            next_action = "add the peer to its endpoint, or leave this row out with a filter like the peer's"
        else:
            found = f"none: no entry of this configuration is for {kinds}"
            next_action = f"add an entry for {kinds} to this configuration, and the peer's row to its endpoint"
        return UnresolvedReferenceError(
            checked=f"the reference {field.name} of {record.label}",
            expected=f"exactly one object of {kinds} with {what} {token.text!r} in {where}",
            found=found,
            next_action=next_action,
        )


def peer_left_out(record: SourceRecord, field: str, peer: SourceRecord) -> PeerLeftOutError:
    """The refusal of a row whose peer cannot be planned; the peer's own fault is the one to correct."""
    return PeerLeftOutError(
        checked=f"the reference {field} of {record.label}",
        expected="a peer that is in the plan or at the destination",
        found=f"{peer.label}, which is left out",
        next_action="correct the peer's row, or leave this one out with a filter",
    )
