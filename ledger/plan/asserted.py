"""The values that an operation writes to an object, and those that its plan had observed before.

A plan's line says the first, its account (coverage) the second; an event says whether anything was written. All of it
is read as in an audit: it may contain anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ledger.errors import ApplyLedgerError
from ledger.plan.canonical import canonical_json_text, operation_id


def asserted_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an operation's record and the values that it asserts, in the order of their names.

    A relationship stands as ``{"identity": ..., "peer_kind": ...}``, one of cardinality many as a list of those: the
    form in which coverage tells what was observed, so that both can be compared. The record may be anything that
    stands where an operation should; what cannot be read asserts nothing.
    """
    payload = record.get("payload")
    fields: dict[str, Any] = dict(payload) if type(payload) is dict or isinstance(payload, Mapping) else {}
    relationships = record.get("relationships")
    if not relationships:
        return fields  # in the order of a canonical line, which is that of the names
    for reference in relationships if isinstance(relationships, list) else ():
        if isinstance(reference, Mapping) and isinstance(reference.get("field"), str):
            fields[reference["field"]] = _peers(reference)
    return dict(sorted(fields.items()))


def observed_values(coverage: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values that were observed, of the fields that differed; empty where nothing is known of them."""
    differences = (coverage or {}).get("differences")
    if not isinstance(differences, Mapping):
        return {}
    return {
        name: difference["observed"]
        for name, difference in differences.items()
        if isinstance(difference, Mapping) and "observed" in difference
    }


def coverage_order(record: Mapping[str, Any]) -> tuple[int, str] | None:
    """Tier and identifier, by which both files are ordered; what has no operation stands where it would (H24)."""
    tier, own = record.get("tier"), record.get("operation_id")
    action, kind, identity = record.get("action"), record.get("kind"), record.get("identity")
    if own is None and isinstance(action, str) and isinstance(kind, str) and isinstance(identity, Mapping):
        try:
            own = operation_id(action, kind, identity)
        except ApplyLedgerError:
            return None
    return (tier, own) if type(tier) is int and isinstance(own, str) else None


def with_coverage(
    lines: Iterable[bytes], coverage: Iterable[bytes]
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Each operation's record and its coverage record, both files read once, side by side."""
    accounts = iter(coverage)
    account: dict[str, Any] | None = None
    for line in lines:
        record = _object(line)
        order = coverage_order(record)
        while order is not None and (account is None or (coverage_order(account) or order) < order):
            following = next(accounts, None)
            if following is None:
                break
            account = _object(following)
        same = account is not None and account.get("operation_id") == record.get("operation_id") is not None
        yield record, account if same else None


def old_and_new(record: Mapping[str, Any], coverage: Mapping[str, Any] | None) -> tuple[str, str]:
    """What was observed before (updates alone) and what is asserted (creates and updates), as JSON or empty text."""
    action = record.get("action")
    old, new = observed_values(coverage) if action == "update" else {}, asserted_fields(record)
    return _json(old), _json(new) if action in ("create", "update") else ""


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _peers(reference: Mapping[str, Any]) -> Any:
    peers = reference.get("peers")
    pointers = [
        {"identity": peer, "peer_kind": reference.get("peer_kind")}
        for peer in (peers if isinstance(peers, list) else ())
    ]
    return pointers[0] if reference.get("cardinality") == "one" and pointers else pointers


def _json(values: Mapping[str, Any]) -> str:
    return canonical_json_text(dict(values)) if values else ""
