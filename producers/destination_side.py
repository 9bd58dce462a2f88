"""Reads the destination: every mapped kind completely, the kinds that share a uniqueness rule with one of them, then
whatever kinds their peers turn out to be.

Peers are read as (kind, id) and resolved to identities through what was read. A pointer to an object that no page
brought is an incomplete extraction: the missing one would otherwise be planned as a create (FF01).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ledger.destination import DestinationReader, IncompleteExtractionError, ObservedObject, PeerPointer
from ledger.plan.canonical import canonical_json_text
from ledger.plan.errors import UnserializablePayloadValueError
from ledger.plan.normal_form import normal_form
from producers.mapping import MappingPlan
from producers.records import ObservedRecord, Peer, identity_text, pairs_of
from producers.snapshots import SnapshotSet


@dataclass(slots=True)
class DestinationSide:
    """Everything that was read, by kind and id and by kind and identity."""

    by_id: dict[str, dict[str, ObservedRecord]] = field(default_factory=dict)
    by_identity: dict[str, dict[str, list[ObservedRecord]]] = field(default_factory=dict)

    def records(self, kind: str) -> Iterable[ObservedRecord]:
        """The objects of a kind in the order in which they were read."""
        return self.by_id.get(kind, {}).values()

    def matches(self, kind: str, text: str) -> list[ObservedRecord]:
        """The objects of a kind with that identity; several where the destination itself holds duplicates."""
        return self.by_identity.get(kind, {}).get(text, [])

    def peer(self, pointer: PeerPointer) -> Peer | None:
        """A peer by identity; None where a part of its identity is missing at the destination."""
        record = self.by_id[pointer.kind][pointer.id]
        return None if record.identity is None else Peer(record.kind, record.identity, record.identity_text)


async def load_destination(
    reader: DestinationReader,
    mapping: MappingPlan,
    constant_kinds: Iterable[str],
    snapshots: SnapshotSet,
    progress: Callable[[int, int | None], None],
) -> DestinationSide:
    """Read all objects that the plan is about.

    Args:
        reader: reads page by page.
        mapping: says which kinds and fields.
        constant_kinds: kinds of constant peers, which need not be mapped.
        snapshots: where objects are written as they come.
        progress: called with objects done and the total counted so far.

    Raises:
        IncompleteExtractionError: a repeated id, a wrong total, or a pointer to an object that was not read (FF01).
    """
    side = DestinationSide()
    extraction = _Extraction(reader, mapping, snapshots, progress, side)
    pending = list(dict.fromkeys([*mapping.kinds, *constant_kinds, *mapping.sharing_kinds()]))
    while pending:
        await extraction.read(pending)
        pending = sorted({pointer.kind for pointer in extraction.pointers()} - set(side.by_id))
    extraction.require_no_dangling()
    identify(side, mapping)
    return side


class _Extraction:
    """One complete reading of a destination."""

    def __init__(
        self,
        reader: DestinationReader,
        mapping: MappingPlan,
        snapshots: SnapshotSet,
        progress: Callable[[int, int | None], None],
        side: DestinationSide,
    ) -> None:
        self._reader = reader
        self._mapping = mapping
        self._snapshots = snapshots
        self._progress = progress
        self._side = side
        self._done = 0
        self._total = 0

    async def read(self, kinds: Iterable[str]) -> None:
        """Read these kinds; counts first, so that progress has a total and nothing is asked where nothing is."""
        counts = await self._reader.counts([kind for kind in kinds if kind in self._mapping.schema.kinds])
        self._total += sum(counts.values())
        for kind, expected in counts.items():
            await self._read_kind(kind, expected)

    async def _read_kind(self, kind: str, expected: int) -> None:
        found: dict[str, ObservedRecord] = {}
        self._side.by_id[kind] = found
        self._progress(self._done, self._total)
        if expected == 0:
            return
        async for item in self._reader.read(kind, self._mapping.selection(kind)):
            if item.id in found:
                raise _incomplete(kind, "each id once", f"id {item.id} twice")
            found[item.id] = self._record(item)
            self._snapshots.add_observed_record(found[item.id])
            self._done += 1
            self._progress(self._done, self._total)
        if len(found) != expected:
            raise _incomplete(kind, f"{expected} objects, as counted before", f"{len(found)} distinct ids")

    def _record(self, item: ObservedObject) -> ObservedRecord:
        attributes = self._mapping.schema.kinds[item.kind].attributes
        try:
            values = {
                name: normal_form(attributes[name], item.attributes[name], kind=item.kind) for name in item.attributes
            }
        except UnserializablePayloadValueError as exc:
            # it can be neither compared nor recorded, and leaving it out would plan it as a create
            raise UnserializablePayloadValueError(
                checked=f"{exc.checked} at the destination, id {item.id}",
                expected=exc.expected,
                found=exc.found,
                next_action="correct that object at the destination, or take the field out of the mapping",
            ) from exc
        return ObservedRecord(kind=item.kind, id=item.id, values=values, one=item.one, many=item.many)

    def pointers(self) -> Iterable[PeerPointer]:
        """Every pointer of every object read so far."""
        for records in self._side.by_id.values():
            for record in records.values():
                yield from (pointer for pointer in record.one.values() if pointer is not None)
                for peers in record.many.values():
                    yield from peers

    def require_no_dangling(self) -> None:
        """Each pointer leads to an object that was read.

        Raises:
            IncompleteExtractionError: names the first that does not, and how many there are.
        """
        dangling = sorted(
            {(item.kind, item.id) for item in self.pointers() if item.id not in self._side.by_id.get(item.kind, {})}
        )
        if dangling:
            kind, node_id = dangling[0]
            more = f" and {len(dangling) - 1} more" if len(dangling) > 1 else ""
            raise _incomplete(kind, "every object that others refer to", f"no object with id {node_id}{more}")


def _incomplete(kind: str, expected: str, found: str) -> IncompleteExtractionError:
    return IncompleteExtractionError(
        checked=f"the destination side, kind {kind}",
        expected=expected,
        found=found,
        next_action="plan again while nobody writes to the destination; nothing was planned",
    )


def identify(side: DestinationSide, mapping: MappingPlan) -> None:
    """Give every object its identity, peers first; what lacks a part keeps None and says which part.

    Rounds instead of recursion: an identity may cross any number of peers.
    """
    pending = [record for records in side.by_id.values() for record in records.values()]
    while pending:
        waiting = [record for record in pending if not _identified(record, side, mapping)]
        if len(waiting) == len(pending):
            for record in waiting:
                record.unidentified = "its identity needs its own identity"
            break
        pending = waiting
    for kind, records in side.by_id.items():
        index = side.by_identity.setdefault(kind, {})
        for record in records.values():
            if record.identity is not None:
                index.setdefault(record.identity_text, []).append(record)


def _identified(record: ObservedRecord, side: DestinationSide, mapping: MappingPlan) -> bool:
    """Whether the record's identity is settled, one way or the other; False while it waits for a peer."""
    names = mapping.identity_fields(record.kind)
    if not names:
        record.unidentified = "its kind has no key"
        return True
    identity, texts = {}, {}
    for name in sorted(names):
        if name in record.values:
            identity[name] = record.values[name]
            texts[name] = canonical_json_text(record.values[name])
            continue
        pointers = record.many[name] if name in record.many else (record.one.get(name),)
        pairs = []
        for pointer in pointers:
            peer = None if pointer is None else side.by_id[pointer.kind][pointer.id]
            if peer is not None and peer.identity is None and not peer.unidentified:
                return False
            if peer is None or peer.identity is None:
                record.unidentified = f"it has no usable {name}"
                return True
            pairs.append(Peer(peer.kind, peer.identity, peer.identity_text))
        ordered = sorted(pairs, key=lambda peer: (peer.kind, peer.text)) if len(pairs) > 1 else pairs
        identity[name], texts[name] = pairs_of(ordered, many=name in record.many)
    record.identity = identity
    record.identity_text = identity_text(texts)
    return True
