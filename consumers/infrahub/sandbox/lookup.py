"""How a mutation finds the object that it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from consumers.infrahub.sandbox.branch import BranchStore
from consumers.infrahub.sandbox.errors import MutationRefusedError, PlainServerError, node_not_found
from consumers.infrahub.sandbox.model import KindModel
from consumers.infrahub.sandbox.records import Node


def by_id(branch: BranchStore, kind: KindModel, node_id: str | None) -> Node:
    """The object of an id; any text that is no id of this kind is answered like a deleted object.

    Raises:
        PlainServerError: null.
        MutationRefusedError: NODE_NOT_FOUND with ``identifier`` as sent.
    """
    if node_id is None:
        raise PlainServerError("id: null")
    node = branch.nodes.get(node_id)
    if node is None:
        raise node_not_found(kind.name, node_id)
    if node.kind is not kind:
        message = f"Node with id {node_id} exists, but it is a {node.kind.name}, not {kind.name}"
        raise node_not_found(kind.name, node_id, message)
    return node


def by_id_or_hfid(branch: BranchStore, kind: KindModel, data: Mapping[str, Any]) -> Node:
    """The object of an update or delete.

    Raises:
        MutationRefusedError: neither is given, or there is no such object.
    """
    if data.get("id") is not None:
        return by_id(branch, kind, data["id"])
    if data.get("hfid") is None:
        raise MutationRefusedError("either id or hfid must be provided.", http_status=400)
    node = by_hfid(branch, kind, data["hfid"])
    if node is None:
        raise node_not_found(kind.name, hfid_text(data["hfid"]))
    return node


def by_hfid(branch: BranchStore, kind: KindModel, hfid: list[Any]) -> Node | None:
    """The object of a human-friendly id, None if there is none.

    Raises:
        MutationRefusedError: the kind has none, or one of another length.
    """
    components = [str(component) for component in hfid]
    refused = f"Unable to lookup node by HFID, schema '{kind.name}'"
    if not kind.kind.human_friendly_id:
        raise node_not_found(kind.name, hfid_text(hfid), f"{refused} does not have a HFID defined.")
    if len(components) != len(kind.kind.human_friendly_id):
        words = f"{refused} HFID does not contain the same number of elements as {components}"
        raise node_not_found(kind.name, hfid_text(hfid), words)
    return branch.find_by_hfid(kind, components)


def hfid_text(hfid: list[Any]) -> str:
    """A human-friendly id as the server's errors name it."""
    return " :: ".join(str(component) for component in hfid)


def by_default_filter(branch: BranchStore, kind: KindModel, data: Mapping[str, Any]) -> Node | None:
    """The object that an upsert means by the kind's default filter; only for kinds without a human-friendly id.

    Raises:
        MutationRefusedError: two objects fit; or the input lacks the attribute, and is itself taken for its value.
    """
    if kind.kind.human_friendly_id or kind.default_filter is None:
        return None
    name = kind.default_filter.split("__")[0]
    if name not in data:
        raise MutationRefusedError(f"filter value: {dict(data)} ({kind.name}UpsertInput) is not supported.")
    if data[name] is None:
        raise MutationRefusedError("argument of type 'NoneType' is not iterable")
    value = data[name].get("value")
    if not value:
        return None
    found = list(branch.with_value(kind.name, name, value).values())
    if len(found) > 1:
        raise node_not_found(kind.name, str(value), f"Unable to find node {value!r}, 2 nodes returned, expected 1")
    return found[0] if found else None


def by_hfid_argument(branch: BranchStore, kind: KindModel, data: Mapping[str, Any]) -> Node | None:
    """The object that an upsert names by ``hfid``; of the right length and unknown, it is as if it were not there.

    Raises:
        MutationRefusedError: null, or the wrong number of components.
    """
    if "hfid" not in data:
        return None
    if data["hfid"] is None:
        raise MutationRefusedError("can only join an iterable")
    return by_hfid(branch, kind, data["hfid"])


def held_on_default_branch(kind: KindModel, holder: str) -> MutationRefusedError:
    """The answer to an upsert on a branch whose key was taken on the default branch after the fork."""
    message = (
        f"Node {holder} / {kind.name} uses this human-friendly ID, but does not exist on this branch. "
        f"Please rebase this branch to access {holder} / {kind.name}"
    )
    return node_not_found(kind.name, holder, message)
