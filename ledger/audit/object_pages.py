"""``history`` and ``blame`` for readers that show some at a time.

What was seen there before, and who had a run go on, is looked up for what is shown alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ledger.audit.bodies import parsed_object
from ledger.audit.history import Assertion, Attributed, ObjectHistory, assertions_of
from ledger.plan.asserted import asserted_fields
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow, ObjectOutcome

_ALONE_KNOWN_IN_WHOLE = ("before", "resumed")
"""What an earlier assertion leaves out here: the history has it."""


async def history_page(
    ledger: Ledger, row: BindingRow, key: bytes, *, before: int | None, newest: int
) -> ObjectHistory | None:
    """The last ``newest`` assertions of an object before a position, oldest first.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        key: of the object (:func:`ledger.plan.canonical.object_key`).
        before: the position before which they stand; None for the end of the log.
        newest: how many at most.

    Returns:
        The history; None if there is none before this position.
    """
    outcomes = await ledger.object_outcomes(row.id, key, before=before, newest=newest)
    return _history(row, outcomes, await assertions_of(ledger, row.id, outcomes)) if outcomes else None


async def short_blame(ledger: Ledger, row: BindingRow, key: bytes, *, most: int) -> dict[str, Any] | None:
    """As :meth:`ledger.audit.history.ObjectHistory.blame`, with bounded lists, newest first, and how long they are.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        key: of the object.
        most: of the earlier assertions of each attribute, of those in doubt, and of the recorded deletes.

    Returns:
        The document; None where no operation on such an object has an outcome on this binding.
    """
    outcomes = await ledger.object_outcomes(row.id, key)
    if not outcomes:
        return None
    history = _history(row, outcomes, list(_unexplained(outcomes)))
    attributed, deletes = history.attributed(), history.deletes_recorded()
    shown = {
        found.outcome.position for one in attributed for found in (one.last, *_newest(one.in_doubt, most)) if found
    }
    explained = await assertions_of(ledger, row.id, [found for found in outcomes if found.position in shown])
    by_position = {assertion.outcome.position: assertion for assertion in explained}
    return {
        **history.head(),
        "node_id": history.node_id(),
        "attributes": [_short(one, by_position, most) for one in attributed],
        "deletes_recorded": [_in_short(found.facts) for found in _newest(deletes, most)],
        "deletes_recorded_total": len(deletes),
    }


def _short(one: Attributed, explained: Mapping[int, Assertion], most: int) -> dict[str, Any]:
    """One attribute; what was there before, and on whose word it went on, with its value and what is in doubt alone."""
    whole = Attributed(
        one.name,
        None if one.last is None else explained[one.last.outcome.position],
        earlier=(),
        in_doubt=[explained[found.outcome.position] for found in _newest(one.in_doubt, most)],
    )
    return whole.document() | {
        "earlier": [_in_short(one.told(found)) for found in _newest(one.earlier, most)],
        "earlier_total": len(one.earlier),
        "in_doubt_total": len(one.in_doubt),
    }


def _history(row: BindingRow, outcomes: Sequence[ObjectOutcome], assertions: Sequence[Assertion]) -> ObjectHistory:
    record = parsed_object(outcomes[-1].line) or {}
    identity = record.get("identity")
    named = dict(sorted(identity.items())) if isinstance(identity, dict) else {}
    return ObjectHistory(row.url, row.branch, str(record.get("kind")), named, assertions)


def _unexplained(outcomes: Sequence[ObjectOutcome]) -> Iterator[Assertion]:
    """The same assertions without what has to be looked up for each; an operation's line is read once."""
    lines: dict[tuple[str, str], tuple[str, Mapping[str, Any]]] = {}
    for outcome in outcomes:
        place = (outcome.plan_checksum, outcome.operation_id)
        if place not in lines:
            record = parsed_object(outcome.line) or {}
            lines[place] = (str(record.get("action")), asserted_fields(record))
        action, fields = lines[place]
        yield Assertion(outcome, action, fields, observed={}, coverage_recorded=False, resumed=None)


def _newest(entries: Sequence[Assertion], most: int) -> Sequence[Assertion]:
    return entries[: -most - 1 : -1]


def _in_short(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in _ALONE_KNOWN_IN_WHOLE}
