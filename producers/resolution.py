"""Resolves the references of source records and gives each record its identity.

An identity may cross references, so identities are found in rounds: a record is settled when the peers that its
identity needs are. When all are settled, every reference is probed over the candidate kinds of its field; exactly one
hit decides (A49 to A52). Peers are looked up in the source; only a constant peer (``static`` with ``reference``) may
exist at the destination alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ledger.errors import ApplyLedgerError
from ledger.plan.canonical import canonical_json_text
from ledger.plan.errors import UnkeyedCreateRefusedError
from ledger.plan.keying import candidate_keys, cannot_be_supplied, usable
from producers.errors import (
    IdentityCycleError,
    MixedPeerKindsError,
    NamelessObjectError,
)
from producers.mapping import FieldPlan, KindPlan, MappingPlan
from producers.peer_index import PeerIndex
from producers.records import Peer, SourceRecord, identity_text, pairs_of
from producers.references import LocalId


def resolve_records(records: Sequence[SourceRecord], mapping: MappingPlan, index: PeerIndex) -> None:
    """Fill ``identity``, ``peers`` and ``referred`` of every record; what fails is a fault on the record.

    Args:
        records: all records of the source.
        mapping: the compiled mapping.
        index: both stores; the records' identities are added to its source store here.
    """
    _identify(records, mapping, index)
    for record in records:
        plan = mapping.kinds[record.kind]
        for field in record.entry.fields:
            if field.name in record.tokens:
                try:
                    record.peers[field.name] = _peers(record, field, plan, index)
                except ApplyLedgerError as exc:
                    record.faulted.add(field.name)
                    _add_once(record, exc)


def _identify(records: Sequence[SourceRecord], mapping: MappingPlan, index: PeerIndex) -> None:
    pending = list(records)
    while pending:
        waiting = []
        for record in pending:
            try:
                if not _identified(record, mapping.kinds[record.kind], index):
                    waiting.append(record)
                    continue
            except ApplyLedgerError as exc:
                record.unidentifiable = True
                _add_once(record, exc)
            index.add_identified(record)
        if len(waiting) == len(pending) and not _settle_one_class(waiting, index):
            return
        pending = [record for record in waiting if not record.unidentifiable]


def _settle_one_class(waiting: Sequence[SourceRecord], index: PeerIndex) -> bool:
    """Nothing moved in a round: fail those whose unique id is nobody's; failing that, the rest wait in a circle.

    Returns whether another round makes sense, because records that wait for a failed one can now be told so.
    """
    missing = [(record, field) for record in waiting for field in _unmatched_fields(record, index)]
    for record, field in missing:
        record.unidentifiable = True
        token = next(item for item in record.tokens[field.name] if not isinstance(item, LocalId))
        candidates = index.candidates(record.kind, field)
        _add_once(record, index.unresolved(record, field, candidates, token, [], constant=field.is_constant_peer))
    if missing:
        return True
    for record in waiting:
        record.unidentifiable = True
        record.faults.append(
            IdentityCycleError(
                checked=f"the identity of {record.label}",
                expected="an identity that does not depend on itself",
                found="references among the identifiers that lead back to the object",
                next_action="choose identifiers of this kind that do not need each other",
            )
        )
    return False


def _unmatched_fields(record: SourceRecord, index: PeerIndex) -> Iterable[FieldPlan]:
    for field in record.entry.fields:
        if field.name in index.mapping.kinds[record.kind].identifiers and any(
            not isinstance(token, LocalId) and index.source_hit(record, field, token) is None
            for token in record.tokens.get(field.name, ())
        ):
            yield field


def _identified(record: SourceRecord, plan: KindPlan, index: PeerIndex) -> bool:
    """Whether the identity is settled; False while a peer that it needs has none yet."""
    identity, texts = {}, {}
    nameless = []
    for name in plan.identifiers:
        if name in record.values and usable(record.values[name]):
            identity[name] = record.values[name]
            texts[name] = canonical_json_text(record.values[name])
        elif record.tokens.get(name):
            peers = []
            field = next(item for item in record.entry.fields if item.name == name)
            for token in record.tokens[name]:
                peer = index.identifying_peer(record, field, token)
                if peer is None:
                    return False
                peers.append(peer)
            many = field.relationship is not None and field.relationship.cardinality == "many"
            identity[name], texts[name] = pairs_of(_sorted(peers), many=many)
        else:
            nameless.append(name)
    unexplained = [name for name in nameless if name not in record.faulted]
    if unexplained:
        record.faulted.update(unexplained)
        raise _nameless(record, plan, unexplained)
    if not nameless:
        record.identity = dict(sorted(identity.items()))
        record.identity_text = identity_text(texts)
    record.unidentifiable = bool(nameless)
    return True


def _nameless(record: SourceRecord, plan: KindPlan, names: Sequence[str]) -> ApplyLedgerError:
    parts = ", ".join(f"{name} is {_state(record, name)}" for name in names)
    keys = " or ".join(f"({', '.join(path.raw for path in key)})" for key in candidate_keys(plan.kind))
    if not _covers_a_key(plan):
        # what is wrong is the choice of identifiers: with all of them given, the create would be refused as well
        return UnkeyedCreateRefusedError(
            checked=f"the key of {record.label}",
            expected=f"identifiers that cover {keys}" if keys else "a kind with a key or a uniqueness constraint",
            found=f"identifiers {', '.join(plan.identifiers)}, of which {parts}",
            next_action="choose identifiers that cover the destination's key, or leave the kind out of the mapping",
        )
    if not _covers_a_key(plan, without=names):
        return UnkeyedCreateRefusedError(
            checked=f"the key of {record.label}",
            expected=f"a usable value for each part of {keys}",
            found=parts,
            next_action="exclude such rows with a filter, or add the missing part by a transform",
        )
    return NamelessObjectError(
        checked=f"the identity of {record.label}",
        expected=f"a usable value for each of {', '.join(plan.identifiers)}",
        found=parts,
        next_action="exclude such rows with a filter, or add a name by a transform",
    )


def _covers_a_key(plan: KindPlan, *, without: Sequence[str] = ()) -> bool:
    given = set(plan.identifiers) - set(without)
    return any(
        all(path.field in given and cannot_be_supplied(plan.kind, path) is None for path in key)
        for key in candidate_keys(plan.kind)
    )


def _state(record: SourceRecord, name: str) -> str:
    if name in record.values:
        return "null" if record.values[name] is None else "blank"
    if name in record.null_references:
        return "null"
    return "empty" if name in record.tokens else "absent"


def _peers(record: SourceRecord, field: FieldPlan, plan: KindPlan, index: PeerIndex) -> tuple[Peer, ...]:
    """The peers of one field, sorted by canonical identity and each once (A21).

    Raises:
        UnresolvedReferenceError: a reference with no hit, or with several (A50).
        PeerLeftOutError: the row that is meant has no identity itself.
        MixedPeerKindsError: the peers are of several kinds.
    """
    found = []
    for token in record.tokens[field.name]:
        peer, referred = index.probe(record, field, plan.candidates[field.name], token)
        found.append(peer)
        record.referred += [(field.name, other) for other in referred]
    kinds = sorted({peer.kind for peer in found})
    if len(kinds) > 1:
        raise MixedPeerKindsError(
            checked=f"the reference {field.name} of {record.label}",
            expected="peers of one kind, because an operation records one kind for a relationship",
            found=", ".join(kinds),
            next_action="map the kinds onto relationships of their own",
        )
    return tuple(_sorted(found))


def _sorted(peers: Sequence[Peer]) -> Sequence[Peer]:
    if len(peers) == 1:
        return peers
    distinct = {(peer.kind, peer.text): peer for peer in peers}
    return [distinct[key] for key in sorted(distinct)]


def _add_once(record: SourceRecord, error: ApplyLedgerError) -> None:
    """One reference can fail for the identity and again for itself; it is one fault."""
    if all(str(error) != str(other) for other in record.faults):
        record.faults.append(error)
