"""What a mutation does to a branch, in the order in which the server checks and acts.

Every write is all or nothing: a draft is checked whole before the branch changes.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from consumers.infrahub.sandbox.address_space import (
    before_deletion,
    in_address_space,
    is_prefix,
    namespace_of,
    reconcile,
    require_address,
    to_delete,
    to_update,
    with_namespace,
)
from consumers.infrahub.sandbox.branch import BranchStore, unique_key
from consumers.infrahub.sandbox.drafts import Draft, differs, draft_attribute, trip_at_once, trip_over_names
from consumers.infrahub.sandbox.errors import MutationRefusedError, refuse_fields, uniqueness_violated
from consumers.infrahub.sandbox.lookup import (
    by_default_filter,
    by_hfid_argument,
    by_id,
    by_id_or_hfid,
    held_on_default_branch,
)
from consumers.infrahub.sandbox.model import KindModel, RelationshipEnd
from consumers.infrahub.sandbox.overlap import Glimpse
from consumers.infrahub.sandbox.peers import (
    PeerRefusedError,
    check_count,
    check_other_side,
    pool_not_found,
    wanted_peers,
)
from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.removal import delete_node
from consumers.infrahub.sandbox.uniqueness import KeyHeldError, check_uniqueness
from consumers.infrahub.sandbox.values import ValueRefusedError

if TYPE_CHECKING:
    from consumers.infrahub.sandbox.store import SandboxStore

_NOT_FIELDS = frozenset({"id", "hfid"})


class BranchWriter:
    """The mutations of one branch."""

    def __init__(self, store: SandboxStore, branch: BranchStore, glimpse: Glimpse | None = None) -> None:
        """``glimpse`` is what a write read a while ago; without it a write sees what is there."""
        self._store = store
        self._branch = branch
        self._glimpse = glimpse or Glimpse()

    def create(self, kind_name: str, data: Mapping[str, Any]) -> Node:
        """``<Kind>Create``: a new object, under the client's id where it gives one.

        Raises:
            MutationRefusedError, InvalidFieldsError: nothing was written.
        """
        kind = self._store.model.kinds[kind_name]
        trip_at_once(kind)
        if in_address_space(kind):
            require_address(kind, data)
            data = with_namespace(self._branch, data)
        return self._create(kind, data, upserting=False)

    def upsert(self, kind_name: str, data: Mapping[str, Any]) -> Node:
        """``<Kind>Upsert``: by id; else by default filter or hfid; else create, and update what holds the key.

        Raises:
            PlainServerError: ``id: null``.
            MutationRefusedError, InvalidFieldsError: nothing was written.
        """
        kind = self._store.model.kinds[kind_name]
        trip_at_once(kind)
        if in_address_space(kind):
            data = with_namespace(self._branch, data)
        if "id" in data:
            return self.update(by_id(self._branch, kind, data["id"]), data)
        node = by_default_filter(self._branch, kind, data) or by_hfid_argument(self._branch, kind, data)
        if node is not None:
            return self.update(node, data)
        if in_address_space(kind):
            require_address(kind, data)
        try:
            return self._create(kind, {name: data[name] for name in data if name != "hfid"}, upserting=True)
        except KeyHeldError as held:
            return self.update(self._holder(kind, held), data, check_uniqueness=False)

    def _holder(self, kind: KindModel, held: KeyHeldError) -> Node:
        """The object that an upsert goes on with; one of a sibling kind, or of another branch, is no such object."""
        try:
            return by_id(self._branch, kind, held.holder)
        except MutationRefusedError:
            if self._branch is self._store.default_branch:
                raise
            raise held_on_default_branch(kind, held.holder) from held

    def update_mutation(self, kind_name: str, data: Mapping[str, Any]) -> Node:
        """``<Kind>Update``: by id or hfid, never a create.

        Raises:
            MutationRefusedError, InvalidFieldsError: nothing was written.
        """
        kind = self._store.model.kinds[kind_name]
        if not in_address_space(kind):
            return self.update(by_id_or_hfid(self._branch, kind, data), data)
        node = to_update(self._branch, kind, data)
        answer = self.update(node, with_namespace(self._branch, data, there=namespace_of(node)))
        reconcile(self._branch, node, self._store.now())
        return answer

    def delete(self, kind_name: str, data: Mapping[str, Any]) -> None:
        """``<Kind>Delete``, with everything that hangs on the object as a component.

        Raises:
            MutationRefusedError, InvalidFieldsError: nothing was deleted.
        """
        node = to_delete(self._branch, self._store.model.kinds[kind_name], data)
        if is_prefix(node.kind):
            before_deletion(self._branch, node, self._store.now())
        delete_node(self._branch, node)

    def update(self, node: Node, data: Mapping[str, Any], *, check_uniqueness: bool = True) -> Node:
        """Change the fields that ``data`` names; returns the object as the mutation's answer shows it.

        Raises:
            MutationRefusedError, InvalidFieldsError: nothing was written.
        """
        trip_over_names(node.kind, data)
        draft = self._draft(node.kind, data, current=node)
        for name, peer_ids in draft.peers.items():
            end = node.kind.ends[name]
            check_other_side(self._branch, end, node.peer_ids(end.slot), peer_ids)
        if check_uniqueness:
            self._check_update_uniqueness(node, draft)
        self._commit(node, draft)
        return _answer_of_update(node, data, draft)

    def _create(self, kind: KindModel, data: Mapping[str, Any], *, upserting: bool) -> Node:
        node_id = self._new_id(kind, data.get("id"))
        missing = [(name, f"{name} is mandatory for {kind.name}") for name in kind.mandatory if name not in data]
        if missing:
            refuse_fields(kind.name, missing)
        draft = self._draft(kind, data, current=None)
        self._fill_defaults(kind, draft)
        at = self._store.now()
        node = Node(node_id, kind, self._store.next_sequence(), at)
        node.values = draft.values
        node.defaults = {name for name, is_default in draft.defaults.items() if is_default}
        node.changed_at = dict.fromkeys(kind.attributes, at)
        node.peers = {kind.ends[name].slot: dict.fromkeys(ids, at) for name, ids in draft.peers.items()}
        node.further = {kind.ends[name].slot: _further(ids) for name, ids in draft.peers.items() if _further(ids)}
        self._check_create_uniqueness(node, upserting=upserting)
        for name, peer_ids in draft.peers.items():
            check_other_side(self._branch, kind.ends[name], (), peer_ids)
        there = self._branch.nodes.get(node_id)
        if there is not None:
            if any(unique_key(node, group) == unique_key(there, group) for group in kind.groups):
                # the lock on that value let it wait for the other one, and then it looked again
                refuse_fields(kind.name, [("id", f"{node_id} is already in use")])
            self._branch.double(node)
            return _as_written(node)
        self._store.used_ids.add(node_id)
        self._branch.add(node)
        if in_address_space(kind):
            reconcile(self._branch, node, at)
        return _as_written(node)

    def _new_id(self, kind: KindModel, wanted: str | None) -> str:
        if not wanted:
            return self._store.new_id()
        try:
            uuid.UUID(wanted)
        except ValueError:
            refuse_fields(kind.name, [("id", f"{wanted} is not a valid UUID")])
        if wanted in self._store.used_ids and not self._was_free(kind, wanted):
            refuse_fields(kind.name, [("id", f"{wanted} is already in use")])
        return wanted

    def _was_free(self, kind: KindModel, wanted: str) -> bool:
        """Whether a create found an id free that another one of its kind has taken since."""
        return wanted in self._glimpse.free and wanted in self._branch.by_kind[kind.name]

    def _draft(self, kind: KindModel, data: Mapping[str, Any], *, current: Node | None) -> Draft:
        """Check every named field: attributes first, then peers; a create names several wrong ones together."""
        draft = Draft()
        fields = {name: raw for name, raw in data.items() if name not in _NOT_FIELDS}
        attributes = {name: raw for name, raw in fields.items() if name not in kind.ends}
        reasons, failures = list[tuple[str, str]](), list[MutationRefusedError]()
        for name, raw in attributes.items():
            try:
                draft_attribute(draft, kind, name, raw, current=current)
            except ValueRefusedError as exc:
                reasons.append((exc.field_of(name), str(exc)))
            except MutationRefusedError as exc:
                failures.append(exc)  # comes up later than any check
        if reasons:
            # An update names one, the first by name; a create names them all.
            refuse_fields(kind.name, reasons if current is None else [min(reasons)])
        if failures:
            raise failures[0]
        for name in [name for name in fields if name in kind.ends]:
            try:
                self._draft_peers(draft, kind.ends[name], fields[name], current=current)
            except PeerRefusedError as exc:
                reasons.append((name, str(exc)))
        if reasons:
            refuse_fields(kind.name, reasons)
        return draft

    def _draft_peers(self, draft: Draft, end: RelationshipEnd, raw: Any, *, current: Node | None) -> None:
        if isinstance(raw, Mapping) and raw.get("from_pool") and not (raw.get("id") or raw.get("hfid")):
            raise pool_not_found(end, raw["from_pool"], of="a new object" if current is None else current.id)
        peer_ids = wanted_peers(self._branch, end, raw)
        # The server takes an explicit nothing for mandatory peers on a create, and only there.
        if current is not None or raw:
            check_count(end, len(set(peer_ids)))
        if current is not None and end.slot != end.reverse_slot:
            # An object that is its own peer is accepted, and reads as if it had none.
            peer_ids = [peer_id for peer_id in peer_ids if peer_id != current.id]
        draft.peers[end.name] = peer_ids

    def _fill_defaults(self, kind: KindModel, draft: Draft) -> None:
        for attribute in kind.attributes.values():
            if attribute.name not in draft.values:
                draft.values[attribute.name] = attribute.default
                draft.defaults[attribute.name] = True

    def _commit(self, node: Node, draft: Draft) -> None:
        at = self._store.now()
        changed = {name: value for name, value in draft.values.items() if differs(node.values.get(name), value)}
        flags = {name for name, is_default in draft.defaults.items() if is_default != (name in node.defaults)}
        for name in {*changed, *flags}:
            node.changed_at[name] = at
            (node.defaults.add if draft.defaults[name] else node.defaults.discard)(name)
        if changed:
            self._branch.set_values(node, changed)
        moved = False
        for name, peer_ids in draft.peers.items():
            end = node.kind.ends[name]
            there = node.peer_ids(end.slot)
            seen = self._glimpse.seen(node, end.slot)
            if set(there if seen is None else seen) != set(peer_ids):
                self._branch.set_peers(node, end, peer_ids, at, seen=seen)
                moved = True
        if changed or flags or moved:
            node.updated_at = at
            self._branch.reindex(node)

    def _check_create_uniqueness(self, node: Node, *, upserting: bool) -> None:
        try:
            check_uniqueness(self._branch, self._store.default_branch, node, named=None)
        except KeyHeldError as held:
            if upserting:
                raise
            raise uniqueness_violated(held.label) from held

    def _check_update_uniqueness(self, node: Node, draft: Draft) -> None:
        trial = Node(node.id, node.kind, 0, "")
        trial.values = {**node.values, **draft.values}
        peers = {node.kind.ends[name].slot: dict.fromkeys(ids, "") for name, ids in draft.peers.items()}
        trial.peers = {**node.peers, **peers}
        try:
            named = (*draft.values, *draft.peers)
            check_uniqueness(self._branch, self._store.default_branch, trial, named=named)
        except KeyHeldError as held:
            raise uniqueness_violated(held.label) from held


def _further(peer_ids: list[str]) -> dict[str, int]:
    """How often a peer is named beside the first time."""
    return {peer_id: times - 1 for peer_id, times in Counter(peer_ids).items() if times > 1}


def _as_written(node: Node) -> Node:
    answer = node.copy()
    answer.as_written = True
    return answer


def _answer_of_update(node: Node, data: Mapping[str, Any], draft: Draft) -> Node:
    """The object in memory, as the server answers an update: no times, and only those single peers that were sent."""
    answer = _as_written(node)
    answer.values.update(draft.values)
    answer.updated_at = answer.created_at = None
    answer.changed_at = dict.fromkeys(answer.changed_at)
    for end in node.kind.ends.values():
        if not end.many and end.name not in data:
            answer.peers.pop(end.slot, None)
    return answer
