"""What an operation asserts of an object: the values that it would have, had it been written.

A plan's line says them; the event says whether it was written. Both are read as an audit has to read: whatever
somebody put there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def asserted_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an operation's record and the values that it asserts, in the order of their names.

    A relationship stands as ``{"identity": ..., "peer_kind": ...}``, one of cardinality many as a list of those: the
    form in which coverage tells what was observed, so that both can be compared.
    """
    payload = record.get("payload")
    fields: dict[str, Any] = dict(payload) if isinstance(payload, Mapping) else {}
    relationships = record.get("relationships")
    for reference in relationships if isinstance(relationships, list) else ():
        if isinstance(reference, Mapping) and isinstance(reference.get("field"), str):
            fields[reference["field"]] = _peers(reference)
    return dict(sorted(fields.items()))


def _peers(reference: Mapping[str, Any]) -> Any:
    peers = reference.get("peers")
    pointers = [
        {"identity": peer, "peer_kind": reference.get("peer_kind")}
        for peer in (peers if isinstance(peers, list) else ())
    ]
    return pointers[0] if reference.get("cardinality") == "one" and pointers else pointers
