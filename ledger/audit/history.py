"""``history`` and ``blame``: everything that was ever asserted of one object, and who is behind each of its values.

All of it comes from look-ups: object key -> lines of plans -> runs with that plan -> their events of that operation.
Neither reads the destination: what the object is now may be something else, by hands that no ledger saw.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cached_property, partial
from typing import Any, Literal, TypeVar

from ledger.audit.before_images import coverage_of
from ledger.audit.bodies import parsed_object
from ledger.audit.close_objects import named_in_part, none_but
from ledger.audit.errors import NeverWrittenError
from ledger.commit import utc_text
from ledger.plan.asserted import asserted_fields, observed_values
from ledger.plan.canonical import canonical_identity, object_key
from ledger.plan.describe import object_text
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow, ObjectOutcome, Resumption

Found = TypeVar("Found")

_AT_ONCE = 16
_SHOWN = 5

Result = Literal["applied", "skipped", "failed", "unknown"]
"""What became of an attempt; ``failed``: proven unwritten, ``unknown``: it may have written."""

_OUTCOMES: Mapping[str, Result] = {
    "operation.applied": "applied",
    "operation.skipped": "skipped",
    "operation.failed": "failed",
}


def outcome_name(kind: str) -> Result:
    """The outcome that an event of this kind records."""
    return _OUTCOMES.get(kind, "unknown")


@dataclass(frozen=True)
class Assertion:
    """One outcome of one operation on the object.

    Attributes:
        outcome: the event, the plan's line and the commit, as stored.
        action: of the operation.
        fields: the values that the operation asserts.
        observed: what the plan had seen there before, of the fields that differed.
        coverage_recorded: whether the plan's account of this operation is there to tell it.
        resumed: the order after which this attempt ran, where the run had been resumed.
    """

    outcome: ObjectOutcome
    action: str
    fields: Mapping[str, Any]
    observed: Mapping[str, Any]
    coverage_recorded: bool
    resumed: Resumption | None

    @property
    def result(self) -> Result:
        """What became of it."""
        return outcome_name(self.outcome.kind)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Which event this is, and on whose word it was sent."""
        outcome, body = self.outcome, parsed_object(self.outcome.body) or {}
        commit = parsed_object(outcome.commit) or {}
        return {
            "position": outcome.position,
            "recorded_at": utc_text(outcome.recorded_at.astimezone(UTC)),
            "event_id": str(outcome.event_id),
            "outcome": self.result,
            "action": self.action,
            "run_id": outcome.run_id,
            "plan_checksum": outcome.plan_checksum,
            "operation_id": outcome.operation_id,
            "ordinal": outcome.ordinal,
            "attempt": outcome.attempt,
            "writer_epoch": outcome.writer_epoch,
            "source": _said(commit, "source"),
            "actor": _said(commit, "actor"),
            "reason": _said(commit, "reason"),
            "committed_at": _said(commit, "committed_at"),
            "node_id": _said(body, "node_id"),
            "error": _said(body, "error"),
            "message": _said(body, "message"),
            "resumed": None if self.resumed is None else _resumption(self.resumed),
        }

    @cached_property
    def changes(self) -> Mapping[str, dict[str, Any]]:
        """Each field with the value asserted, and with the one observed before where the plan recorded it.

        An update names in its coverage every field that differed, so one that is not named there was sent as it was.
        """
        changes: dict[str, dict[str, Any]] = {}
        for name, value in self.fields.items():
            changes[name] = {"value": value}
            if name in self.observed:
                changes[name]["before"] = self.observed[name]
            elif self.action == "update" and self.coverage_recorded:
                changes[name]["before"] = value
        return changes


@dataclass(frozen=True, slots=True)
class ObjectHistory:
    """All assertions of one object on one binding, oldest first."""

    url: str
    branch: str
    kind: str
    identity: Mapping[str, Any]
    assertions: Sequence[Assertion]

    def head(self) -> dict[str, Any]:
        """Which object, where."""
        key = object_key(self.kind, self.identity).hex()
        return {
            "url": self.url,
            "branch": self.branch,
            "kind": self.kind,
            "identity": dict(self.identity),
            "object_key": key,
        }

    def document(self) -> dict[str, Any]:
        """The history for machines, oldest first."""
        return {
            **self.head(),
            "assertions": [{**assertion.facts, "fields": assertion.changes} for assertion in self.assertions],
        }

    def blame(self) -> dict[str, Any]:
        """Each attribute with the assertion that its value is from, the earlier ones, and what is in doubt since."""
        return {
            **self.head(),
            "node_id": self.node_id(),
            "node_changes": self.node_changes(),
            "attributes": [attributed.document() for attributed in self.attributed()],
            "deletes_recorded": [dict(assertion.facts) for assertion in self.deletes_recorded()],
        }

    def node_id(self) -> str | None:
        """The last one that the destination named of it."""
        applied = (assertion for assertion in reversed(self.assertions) if assertion.result == "applied")
        return next((node for node in (assertion.facts["node_id"] for assertion in applied) if node), None)

    def node_changes(self) -> list[dict[str, Any]]:
        """Each write that the destination answered with another node id than the one before it; oldest first.

        This program deletes nothing, so the object with the earlier id was taken away or renamed by somebody else.
        """
        changes: list[dict[str, Any]] = []
        last: str | None = None
        for assertion in self.assertions:
            node = assertion.facts["node_id"] if assertion.result == "applied" else None
            if node is not None and last not in (None, node):
                said = {name: assertion.facts[name] for name in ("position", "recorded_at", "action", "run_id")}
                changes.append({**said, "node_id": node, "before": last})
            last = node or last
        return changes

    def deletes_recorded(self) -> list[Assertion]:
        """The deletes of it that were planned, and are never executed; oldest first."""
        return [found for found in self.assertions if found.action == "delete" and found.result == "skipped"]

    def attributed(self) -> list[Attributed]:
        """Its attributes by name, each with the assertions that have, or may have, reached the destination."""
        told: dict[str, list[Assertion]] = {}
        for assertion in self.assertions:
            if assertion.result in ("applied", "unknown"):
                for name in assertion.fields:
                    told.setdefault(name, []).append(assertion)
        return [_attributed(name, told[name]) for name in sorted(told)]


@dataclass(frozen=True, slots=True)
class Attributed:
    """Who is behind one attribute.

    Attributes:
        name: of the attribute.
        last: the assertion that its value is from; None if none is known to have been applied.
        earlier: those applied before it, oldest first.
        in_doubt: those since then of which nobody knows whether they were, oldest first.
    """

    name: str
    last: Assertion | None
    earlier: Sequence[Assertion]
    in_doubt: Sequence[Assertion]

    def document(self) -> dict[str, Any]:
        """All of it for machines."""
        return {
            "name": self.name,
            **({"value": None, "outcome": "unknown"} if self.last is None else self.told(self.last)),
            "earlier": [self.told(assertion) for assertion in self.earlier],
            "in_doubt": [self.told(assertion) for assertion in self.in_doubt],
        }

    def told(self, assertion: Assertion) -> dict[str, Any]:
        """What one assertion says of this attribute, and whose word it is."""
        return {**assertion.changes[self.name], **assertion.facts}


def _attributed(name: str, told: Sequence[Assertion]) -> Attributed:
    applied = [assertion for assertion in told if assertion.result == "applied"]
    since = applied[-1].outcome.position if applied else 0
    doubt = [found for found in told if found.result == "unknown" and found.outcome.position > since]
    return Attributed(name, applied[-1] if applied else None, applied[:-1], doubt)


async def object_history(
    ledger: Ledger, row: BindingRow, kind: str, identity: Mapping[str, Any]
) -> ObjectHistory | None:
    """Everything that was ever asserted of one object on one binding.

    Args:
        ledger: open, with any role that may read.
        row: the binding.
        kind: of the object.
        identity: its identity in the form in which plans have it.

    Returns:
        The history; None where no operation on such an object has an outcome on this binding.

    Raises:
        UnserializablePayloadValueError: the identity has a value that no plan can have.
        StoreError: the database cannot be read.
    """
    outcomes = await ledger.object_outcomes(row.id, object_key(kind, identity))
    if not outcomes:
        return None
    assertions = await assertions_of(ledger, row.id, outcomes)
    return ObjectHistory(row.url, row.branch, kind, canonical_identity(identity, kind=kind), assertions)


async def assertions_of(ledger: Ledger, binding_id: int, outcomes: Sequence[ObjectOutcome]) -> list[Assertion]:
    """Outcomes with what their plans had observed before, and on whose word each attempt ran."""
    records = {_place(outcome): parsed_object(outcome.line) or {} for outcome in outcomes}
    ordinals = {_place(outcome): outcome.ordinal for outcome in outcomes}
    runs = {outcome.run_id: None for outcome in outcomes}
    coverages = await _side_by_side(
        [partial(coverage_of, ledger, at[0], records[at], ordinal=ordinals[at]) for at in records]
    )
    resumptions = await _side_by_side([partial(ledger.resumptions, binding_id, run_id) for run_id in runs])
    coverage_at, resumed_in = dict(zip(records, coverages, strict=True)), dict(zip(runs, resumptions, strict=True))
    return [
        _assertion(outcome, records[_place(outcome)], coverage_at[_place(outcome)], resumed_in[outcome.run_id])
        for outcome in outcomes
    ]


async def _side_by_side(look_ups: Sequence[Callable[[], Awaitable[Found]]]) -> list[Found]:
    """Some at a time: one after the other each waits for the way to the database and back, all at once for a turn."""
    found: list[Found] = []
    for first in range(0, len(look_ups), _AT_ONCE):
        found += await asyncio.gather(*(look_up() for look_up in look_ups[first : first + _AT_ONCE]))
    return found


def _place(outcome: ObjectOutcome) -> tuple[str, str]:
    """The operation of which it is an outcome."""
    return outcome.plan_checksum, outcome.operation_id


def _assertion(
    outcome: ObjectOutcome,
    record: Mapping[str, Any],
    coverage: Mapping[str, Any] | None,
    resumptions: Sequence[Resumption],
) -> Assertion:
    before = [found for found in resumptions if found.position < outcome.position and _resumption(found)["by"]]
    return Assertion(
        outcome=outcome,
        action=str(record.get("action")),
        fields=asserted_fields(record),
        observed=observed_values(coverage),
        coverage_recorded=coverage is not None,
        resumed=before[-1] if before else None,
    )


async def require_histories(
    ledger: Ledger, rows: Sequence[BindingRow], kind: str, identities: Sequence[Mapping[str, Any]]
) -> list[ObjectHistory]:
    """The histories of one object on several bindings, under the first of several ways to read its identity.

    Where there is no such object, the fields that were named may be some of one that there is.

    Raises:
        NeverWrittenError: no operation on it has an outcome on any of them, or several objects may be meant.
    """
    if found := await _first_known(ledger, rows, kind, identities):
        return found
    meant: list[dict[str, Any]] = []
    for identity in identities:
        meant = meant or await named_in_part(ledger, rows, kind, identity)
    if len(meant) == 1 and (found := await _first_known(ledger, rows, kind, meant)):
        return found
    where = ", ".join(str(row.binding) for row in rows) or "any destination"
    raise NeverWrittenError(
        checked=f"the object {object_text(kind, identities[0])} on {where}",
        expected="an operation on it that was attempted",
        found=_several(kind, meant) if len(meant) > 1 else await none_but(ledger, rows, kind, identities[0]),
        next_action="compare kind and identity with a plan (`apply-ledger show RUN`); a reference is named by a value"
        " of its object (site=lab, or site.name=lab)",
    )


async def _first_known(
    ledger: Ledger, rows: Sequence[BindingRow], kind: str, identities: Sequence[Mapping[str, Any]]
) -> list[ObjectHistory]:
    for identity in identities:
        found = [history for row in rows if (history := await object_history(ledger, row, kind, identity)) is not None]
        if found:
            return found
    return []


def _several(kind: str, meant: Sequence[Mapping[str, Any]]) -> str:
    shown = "; ".join(object_text(kind, identity) for identity in meant[:_SHOWN])
    return f"{len(meant):,} objects that may be meant: {shown}{'; …' if len(meant) > _SHOWN else ''}"


def _resumption(resumed: Resumption) -> dict[str, Any]:
    body = parsed_object(resumed.body) or {}
    return {"position": resumed.position, "by": _said(body, "by"), "reason": _said(body, "reason")}


def _said(record: Mapping[str, Any], name: str) -> str | None:
    """A text of a stored record; None if there is none, or something that no program of ours would have stored."""
    value = record.get(name)
    return value if isinstance(value, str) else None
