"""What a review says about one resource's fields: observed -> desired, in words that a terminal can show safely."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ledger.plan.canonical import canonical_json_bytes
from ledger.plan.describe import SENSITIVE, SecretFields, component_text, is_reference, value_text
from ledger.plan.model import PlannedOperation, RelationshipReference
from ledger.plan.saved_plan import Resource
from ledger.printable import words

BIG_TEXT = 160
"""Characters from which on a text is shown as "differs", as are texts of several lines (H21)."""

MAX_EXCERPT_LINES = 40
"""Lines of a difference that a detailed review shows; the whole values are in the JSON form."""

MAX_LINE = 1_000
"""Characters of one of these lines."""

MAX_COMPARED_LINES = 2_000
"""Comparing costs the product of both numbers of lines where lines repeat; a plan may hold a million of them."""


class _NotRecorded:
    """Marks a value that the plan does not record."""

    def __repr__(self) -> str:
        return "not recorded"


NOT_RECORDED = _NotRecorded()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field: what was observed, and what is desired. Either may be :data:`NOT_RECORDED`."""

    field: str
    observed: Any
    desired: Any


@dataclass(frozen=True, slots=True)
class ChangeText:
    """A change in words: one line, and below it an excerpt of signed lines (``+``, ``-``, or blank for context)."""

    line: str
    excerpt: tuple[str, ...] = ()


def field_changes(resource: Resource) -> list[FieldChange]:
    """The fields that matter to a reviewer, by name.

    Of an update the differing ones where coverage is recorded, else all that would be sent; of a create all but the
    identity, which is next to them; of a recorded delete the values that were observed.
    """
    if resource.line is not None and resource.line.differences:
        found = resource.line.differences
        return [FieldChange(name, found[name].observed, found[name].desired) for name in sorted(found)]
    if resource.action not in ("create", "update") or resource.operation is None:
        return []
    sent = _sent(resource.operation)
    return [FieldChange(name, NOT_RECORDED, value) for name, value in sent.items() if name not in resource.identity]


def also_sent(resource: Resource) -> dict[str, Any]:
    """What an update sends besides the fields that are shown as differing, by name.

    A plan of this program sends the observed values. Another plan may not, so a reviewer has to see it (A2).
    """
    if resource.action != "update" or resource.operation is None or resource.line is None:
        return {}
    told = {*resource.line.differences, *resource.identity}
    return {name: value for name, value in _sent(resource.operation).items() if name not in told}


def _sent(operation: PlannedOperation) -> dict[str, Any]:
    sent: dict[str, Any] = dict(operation.payload or {})
    sent |= {reference.field: _peers(reference) for reference in operation.relationships or ()}
    return dict(sorted(sent.items()))


def change_text(resource: Resource, change: FieldChange, secrets: SecretFields) -> ChangeText:
    """One field in words; values of secret fields are never in them (G12)."""
    name, observed, desired = change.field, change.observed, change.desired
    if secrets.hides(resource.kind, name):
        return ChangeText(SENSITIVE)
    if resource.action == "create" and observed is NOT_RECORDED:
        return _one_value(resource.kind, name, desired, secrets)
    if resource.action == "remove":
        return ChangeText(f"was {component_text(resource.kind, name, observed, secrets=secrets)}")
    if _is_peer_list(observed) and _is_peer_list(desired) and (observed or desired):
        return _peer_change(resource.kind, name, observed, desired, secrets)
    if _is_big(observed) or _is_big(desired):
        return _big_text_change(observed, desired)
    before = (
        "(observed value not recorded)"
        if observed is NOT_RECORDED
        else component_text(resource.kind, name, observed, secrets=secrets)
    )
    return ChangeText(f"{before} → {component_text(resource.kind, name, desired, secrets=secrets)}")


def masked(kind: str, field: str, value: Any, secrets: SecretFields) -> Any:
    """The value for a document: as it is, with secret fields replaced, in references to any depth."""
    if secrets.hides(kind, field):
        return SENSITIVE
    if is_reference(value):
        return {
            "identity": masked_identity(value["peer_kind"], value["identity"], secrets),
            "peer_kind": value["peer_kind"],
        }
    if isinstance(value, list):
        return [masked(kind, field, item, secrets) for item in value]
    return value


def masked_identity(kind: str, identity: Mapping[str, Any], secrets: SecretFields) -> dict[str, Any]:
    """An identity for a document, secret fields replaced."""
    return {name: masked(kind, name, value, secrets) for name, value in identity.items()}


def _peers(reference: RelationshipReference) -> Any:
    pairs = [{"identity": peer, "peer_kind": reference.peer_kind} for peer in reference.peers]
    return pairs[0] if reference.cardinality == "one" else pairs


def _one_value(kind: str, field: str, value: Any, secrets: SecretFields) -> ChangeText:
    if not _is_big(value):
        return ChangeText(component_text(kind, field, value, secrets=secrets))
    lines = _lines(value)
    shown = tuple(f"  {words(line, MAX_LINE)}" for line in lines[:MAX_EXCERPT_LINES])
    return ChangeText(f"text of {_amount(value)}", (*shown, *_cut(len(lines) - len(shown))))


def _big_text_change(observed: Any, desired: Any) -> ChangeText:
    if not isinstance(desired, str):
        return ChangeText(f"text of {_amount(observed)} → {value_text(desired)}")
    if not isinstance(observed, str):
        before = "" if observed is NOT_RECORDED else f"{value_text(observed)} → "
        return ChangeText(f"{before}text of {_amount(desired)}")
    old, new = _lines(observed), _lines(desired)
    figures = f"{len(old)} → {len(new)} lines" if len(old) != len(new) else _plural(len(new), "line")
    if len(old) == len(new) == 1:
        return ChangeText(
            f"differs ({figures}, {len(observed):,} → {len(desired):,} characters)",
            (f"- {value_text(observed, limit=BIG_TEXT)}", f"+ {value_text(desired, limit=BIG_TEXT)}"),
        )
    if max(len(old), len(new)) > MAX_COMPARED_LINES:
        return ChangeText(f"differs ({figures}; too many to compare here, --output json shows all)")
    # A carriage return is data: shown as an escape, never taken for an end of line.
    delta = list(difflib.unified_diff(old, new, lineterm="", n=1))[2:]
    excerpt = [
        f"{line[0]} {words(line[1:], MAX_LINE)}" if line[:2] != "@@" else line for line in delta[:MAX_EXCERPT_LINES]
    ]
    return ChangeText(f"differs ({figures})", (*excerpt, *_cut(len(delta) - len(excerpt))))


def _peer_change(kind: str, field: str, observed: list[Any], desired: list[Any], secrets: SecretFields) -> ChangeText:
    before = {canonical_json_bytes(peer): peer for peer in observed}
    after = {canonical_json_bytes(peer): peer for peer in desired}

    def told(sign: str, peers: Mapping[bytes, Any], others: Mapping[bytes, Any]) -> list[str]:
        gone = [peer for spelling, peer in peers.items() if spelling not in others]
        return sorted(f"{sign} {component_text(kind, field, peer, secrets=secrets)}" for peer in gone)

    excerpt = told("-", before, after) + told("+", after, before)
    shown = excerpt[:MAX_EXCERPT_LINES]
    line = f"{_plural(len(before), 'peer')} → {_plural(len(after), 'peer')}"
    return ChangeText(line, (*shown, *_cut(len(excerpt) - len(shown))))


def _is_peer_list(value: Any) -> bool:
    return isinstance(value, list) and all(is_reference(item) for item in value)


def _is_big(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > BIG_TEXT or "\n" in value or "\r" in value)


def _lines(text: str) -> list[str]:
    return re.split("\n", text)


def _amount(text: str) -> str:
    return f"{_plural(len(_lines(text)), 'line')} ({len(text):,} characters)"


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _cut(hidden: int) -> tuple[str, ...]:
    return (f"  … {_plural(hidden, 'line')} more; --output json shows all",) if hidden > 0 else ()
