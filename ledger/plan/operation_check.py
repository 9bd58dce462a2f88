"""Checks quickly that an operation keeps every rule of its record, without building a model of it.

:class:`ledger.plan.model.PlannedOperation` states the rules and names what is wrong. Validating a million of them
costs more than everything else that is done with their bytes. So the question is asked here first, with the answers
"certainly" and "ask the model": whatever passes here, the model accepts, and whatever does not pass is left to it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

from ledger.plan.canonical import canonical_json_bytes, same_bytes
from ledger.plan.model import ACTIONS

_CREATE: Final = ("action", "identity", "kind", "operation_id", "payload", "tier")
_UPDATE: Final = ("action", "destination_id", "identity", "kind", "operation_id", "payload", "tier")
_DELETE: Final = ("action", "identity", "kind", "operation_id", "tier")


def _with_relationships(keys: tuple[str, ...]) -> tuple[str, ...]:
    return (*keys[:-1], "relationships", "tier")


_SHAPES: Final[Mapping[int, Mapping[tuple[str, ...], str]]] = {
    2: {
        _CREATE: "create",
        _with_relationships(_CREATE): "create",
        _DELETE: "delete",
    },
    3: {
        _CREATE: "create",
        _with_relationships(_CREATE): "create",
        _UPDATE: "update",
        _with_relationships(_UPDATE): "update",
        _DELETE: "delete",
    },
}
"""For each format, the keys of a canonical record in their order, and the action that has exactly these."""

_REFERENCE: Final = ("cardinality", "field", "peer_kind", "peers")

_ID_START: Final = {action: b'["%s",' % action.encode() for action in ACTIONS}
_IDENTITY: Final = b',"identity":'
_KIND: Final = b',"kind":'
_OPERATION_ID: Final = b',"operation_id":'


def certainly_valid(line: bytes, record: Any, format_version: int) -> bool:
    """Whether a record keeps every rule of :class:`ledger.plan.model.PlannedOperation` and of its format.

    Args:
        line: the canonical line that the record was decoded from; its keys are sorted.
        record: the decoded value.
        format_version: of the manifest.
    """
    if type(record) is not dict:
        return False
    action, kind, identity = record.get("action"), record.get("kind"), record.get("identity")
    if type(action) is not str or _SHAPES[format_version].get(tuple(record)) != action:
        return False
    if type(kind) is not str or not kind or type(identity) is not dict or not identity:
        return False
    tier = record["tier"]
    if type(tier) is not int or tier < 0 or not _has_own_id(line, record):
        return False
    if action == "delete":
        return True
    payload = record["payload"]
    if type(payload) is not dict or (action == "update" and not _is_filled(record["destination_id"])):
        return False
    references = _references(record["relationships"], payload) if "relationships" in record else {}
    return references is not None and _identity_is_written(identity, payload, references)


def _is_filled(value: object) -> bool:
    return type(value) is str and bool(value.strip())


def _has_own_id(line: bytes, record: dict[str, Any]) -> bool:
    hashed = _ID_START[record["action"]] + kind_and_identity(line, record) + b"]"
    return bool(record["operation_id"] == "op_" + hashlib.sha256(hashed).hexdigest()[:16])


def kind_and_identity(line: bytes, record: Mapping[str, Any]) -> bytes:
    """The canonical bytes of a record's kind, a comma, and its identity, cut out of its canonical line.

    A key between quotes and after a comma cannot be part of a text, where quotes are escaped. So the first
    ``"identity"`` is the record's own: before it stand texts alone. ``"kind"`` may be a key inside the identity or the
    payload too; only where it occurs once it is the record's own.
    """
    parts = line.split(_KIND)
    if len(parts) != 2:
        return canonical_json_bytes([record["kind"], record["identity"]])[1:-1]
    before, after = parts
    return after[: after.find(_OPERATION_ID)] + b"," + before[before.find(_IDENTITY) + len(_IDENTITY) :]


def _references(found: Any, payload: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
    """References by their field, or None where one of them needs a closer look."""
    if type(found) is not list or not found:
        return None
    references = {}
    for reference in found:
        if type(reference) is not dict or tuple(reference) != _REFERENCE:
            return None
        field, peer_kind, peers = reference["field"], reference["peer_kind"], reference["peers"]
        if type(field) is not str or not field or field in references or field in payload:
            return None
        if type(peer_kind) is not str or not peer_kind or type(peers) is not list:
            return None
        if not _peers_fit(reference["cardinality"], peers):
            return None
        references[field] = reference
    return references


def _peers_fit(cardinality: object, peers: list[Any]) -> bool:
    for peer in peers:
        if type(peer) is not dict or not peer:
            return False
    if cardinality == "one":
        return len(peers) == 1
    if cardinality != "many":
        return False
    if len(peers) < 2:
        return True
    encoded = [canonical_json_bytes(peer) for peer in peers]
    return all(one < other for one, other in pairwise(encoded))


def _identity_is_written(
    identity: dict[str, Any], payload: dict[str, Any], references: dict[str, dict[str, Any]]
) -> bool:
    for name, recorded in identity.items():
        if name in payload:
            written = payload[name]
        elif name in references:
            written = _written_by(references[name])
        else:
            return False
        if written != recorded or not (_is_of_texts(recorded) or same_bytes(written, recorded)):
            return False
    return True


def _written_by(reference: dict[str, Any]) -> Any:
    peer_kind = reference["peer_kind"]
    if reference["cardinality"] == "one":
        return {"identity": reference["peers"][0], "peer_kind": peer_kind}
    return [{"identity": peer, "peer_kind": peer_kind} for peer in reference["peers"]]


def _is_of_texts(value: Any) -> bool:
    """Whether equality is equality of bytes: it is for texts; of numbers the language has an opinion of its own."""
    if type(value) is dict:
        for item in value.values():  # noqa: SIM110 - a generator costs more than the loop saves
            if type(item) is not str and not _is_of_texts(item):
                return False
        return True
    return type(value) is str
