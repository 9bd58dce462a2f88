"""Orders for the writer of a binding: commit, resume, stop; and what the events say of a run."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from ledger.commit import MAX_ACTOR_BYTES, MAX_REASON_BYTES, PlanCommit, Policy
from ledger.errors import Finding
from ledger.events import SCHEMA_VERSION, TERMINAL_KINDS, PlanCommitted, PlanRefused, new_event
from ledger.plan.canonical import canonical_json_bytes
from ledger.store.bindings import BindingQueries
from ledger.store.errors import BodyTooLargeError, InvalidCallError, UnknownPositionError, UnreadableCommitError
from ledger.store.records import (
    BindingRow,
    CommittedOrder,
    MessagePlace,
    Order,
    OrderKind,
    OutcomeFact,
    Receipt,
    RunFacts,
)

_OPENING = frozenset({"plan.committed", "run.started", "run.resumed"})
_STARTING = frozenset({"run.started", "run.resumed"})


class OrderQueries(BindingQueries):
    """Part of :class:`ledger.store.ledger.Ledger`."""

    async def submit_commit(self, binding_id: int, commit: PlanCommit) -> Receipt:
        """Put a commit into the inbox and ``plan.committed`` into the log, in one transaction.

        A repeat (same commit id) is answered with the first row, whatever its time, actor, reason and trace say.

        Raises:
            CommitConflictError: it came before with other content (while its run is open), or another artifact.
            RunChecksumConflictError: this run was committed with another plan.
            PolicyConflictError: its run is open under another policy.
            InvalidCallError: the commit is for another binding.
            UnknownPositionError: the plan's ledger position is not of this ledger.
            BodyTooLargeError: the commit, its reason or its actor.
        """
        row = await self._submittable(binding_id, [commit])
        receipt = await self._session.row(
            "submit_commit", *_submission(row, commit), doing=f"the commit of run {commit.run_id}"
        )
        self._session.ringer.ring(binding_id)
        return _receipt(receipt)

    async def submit_commits(self, binding_id: int, commits: Sequence[PlanCommit]) -> list[Receipt]:
        """Several of one binding, in this order and in one statement: all are recorded, or none.

        A transaction of several statements would hold the binding's row between them, and a process that is stopped
        there (paused, swapped out) would keep the writer of the binding from appending and from renewing its lease.

        Raises:
            As :meth:`submit_commit`, for the first that is refused.
        """
        row = await self._submittable(binding_id, commits)
        columns = zip(*(_submission(row, commit)[1:] for commit in commits), strict=True)
        runs = ", ".join(dict.fromkeys(commit.run_id for commit in commits))
        asked = f"the commits of runs {runs}" if len(commits) > 1 else f"the commit of run {runs}"
        receipts = await self._session.rows("submit_commits", binding_id, *map(list, columns), doing=asked)
        self._session.ringer.ring(binding_id)
        return [_receipt(receipt) for receipt in receipts]

    async def _submittable(self, binding_id: int, commits: Sequence[PlanCommit]) -> BindingRow:
        """The binding's row, where these commits may be put into its inbox."""
        row = await self.binding(commits[0].binding)
        if row is None or row.id != binding_id:
            row = await self._known_binding(binding_id)
        for commit in commits:
            _check_texts(commit.actor, commit.reason)
            if not commit.binding.same_as(row.binding):
                raise InvalidCallError(
                    checked="the binding of a commit",
                    expected=str(row.binding),
                    found=str(commit.binding),
                    next_action="submit it to the binding that it names",
                )
            _check_position(commit, row.head_position)
        return row

    async def submit_resume(
        self,
        binding_id: int,
        *,
        run_id: str,
        by: str,
        reason: str,
        policy: Policy,
        order_id: uuid.UUID | None = None,
    ) -> Receipt:
        """Ask the writer to go on with a run that stopped, failed, was interrupted or refused.

        A resume of that run that is still open is answered with its row.

        Args:
            binding_id: where.
            run_id: which run.
            by: who asks, as claimed.
            reason: at most 64 KiB.
            policy: for the rest of the run.
            order_id: a random id of the sender's, for asking again; made here by default.

        Raises:
            UnknownRunError, RunFinishedError, RunStillOpenError: the run is not to be resumed.
            OrderConflictError: an open resume has another policy.
        """
        body = {"by": by, "policy": policy.model_dump(mode="json"), "reason": reason}
        return await self._submit(binding_id, order_id, "resume", run_id, body)

    async def submit_stop(
        self, binding_id: int, *, run_id: str, by: str, reason: str, order_id: uuid.UUID | None = None
    ) -> Receipt:
        """Ask the writer to stop a run between two operations.

        Raises:
            UnknownRunError, RunFinishedError: there is nothing to stop.
        """
        return await self._submit(binding_id, order_id, "stop", run_id, {"by": by, "reason": reason})

    async def refuse_message(
        self, place: MessagePlace, *, digest: bytes, findings: Sequence[Finding], binding: BindingRow | None
    ) -> bool:
        """Record, once and for good, that what stands in ``place`` cannot become an order (G10).

        Args:
            place: where the message stands.
            digest: sha256 of its body; the body itself is not kept.
            findings: why, each naming what was expected and found.
            binding: the binding that the message names, where it is known here: its log then says so too, without a
                run, so that a message that nobody can trust ends none.

        Returns:
            Whether this is the first record of it.

        Raises:
            MessageConflictError: another message was refused from this place.
        """
        event: tuple[Any, ...] = (None, None, None, None)
        if binding is not None:
            told = new_event(
                "plan.refused",
                PlanRefused(findings=list(findings)),
                url=binding.url,
                branch=binding.branch,
                n=str(place),
            )
            event = (binding.id, told.event_id, SCHEMA_VERSION, told.body.decode())
        reason = "\n".join(str(finding) for finding in findings)
        first = await self._session.value(
            "refuse_message", place.topic, place.partition, place.offset, digest, reason, *event
        )
        return bool(first)

    async def message_refusal(self, place: MessagePlace) -> str | None:
        """Why the message in ``place`` was refused, one line for each finding; None where it was not."""
        reason = await self._session.value("message_refusal", place.topic, place.partition, place.offset)
        return None if reason is None else str(reason)

    async def open_orders(self, binding_id: int) -> list[Order]:
        """What waits on a binding, in the order in which it came."""
        return [_order(row) for row in await self._session.rows("open_orders", binding_id)]

    async def pending_stop(self, binding_id: int, run_id: str) -> Order | None:
        """The open stop order of a run."""
        row = await self._session.row("pending_stop", binding_id, run_id)
        return None if row is None else _order(row)

    async def order(self, binding_id: int, order_id: uuid.UUID) -> Order | None:
        """One order, open or closed."""
        row = await self._session.row("order_by_id", binding_id, order_id)
        return None if row is None else _order(row)

    async def run_commit(self, binding_id: int, run_id: str) -> PlanCommit | None:
        """The commit of a run as it was taken, or None where there was none.

        Raises:
            UnreadableCommitError: it was edited.
        """
        body = await self._session.value("run_commit", binding_id, run_id)
        return None if body is None else stored_commit(body, run_id)

    async def committed_order(self, binding_id: int, run_id: str) -> CommittedOrder | None:
        """The inbox's row of a run's commit, or None where there is none."""
        row = await self._session.row("committed_order", binding_id, run_id)
        if row is None:
            return None
        return CommittedOrder(
            body=row["body"].encode(),
            commit_id=str(row["commit_id"]),
            plan_checksum=row["plan_checksum"].hex(),
            artifact_digest=row["artifact_digest"].hex(),
            source=row["source"],
            position=row["position"],
        )

    async def run_state(self, binding_id: int, run_id: str) -> RunFacts:
        """What the events say of a run: how it began and ended, and the last outcome of each operation."""
        marks = await self._session.rows("run_marks", binding_id, run_id)
        outcomes = await self._session.rows("run_outcomes", binding_id, run_id)
        ends = [mark for mark in marks if mark["kind"] in TERMINAL_KINDS]
        committed = [mark["position"] for mark in marks if mark["kind"] == "plan.committed"]
        return RunFacts(
            run_id=run_id,
            committed_position=committed[0] if committed else None,
            terminal=ends[-1]["kind"] if ends else None,
            terminal_position=ends[-1]["position"] if ends else None,
            is_open=bool(marks) and marks[-1]["kind"] in _OPENING,
            starts=sum(mark["kind"] in _STARTING for mark in marks),
            started=any(mark["kind"] == "run.started" for mark in marks),
            outcomes={row["operation_id"]: OutcomeFact(**dict(row)) for row in outcomes},
        )

    async def _submit(
        self, binding_id: int, order_id: uuid.UUID | None, kind: OrderKind, run_id: str, body: dict[str, Any]
    ) -> Receipt:
        _check_texts(body["by"], body["reason"])
        text = canonical_json_bytes(body).decode()
        receipt = await self._session.row(
            "submit_order",
            *(binding_id, order_id or uuid.uuid4(), kind, run_id, text),
            doing=f"the order to {kind} run {run_id}",
        )
        self._session.ringer.ring(binding_id)
        return _receipt(receipt)


def _check_texts(by: str, reason: str) -> None:
    """Bounded here, so that every event that repeats them later fits as well."""
    for name, text, limit in (("name of who asks", by, MAX_ACTOR_BYTES), ("reason", reason, MAX_REASON_BYTES)):
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > limit:
            raise BodyTooLargeError(
                checked=f"the {name}",
                expected=f"at most {limit} bytes",
                found=f"{size} bytes",
                next_action=f"shorten the {name}, or name a document that holds it",
            )


def stored_commit(body: str, run_id: str) -> PlanCommit:
    """The commit of a run as the inbox has it.

    Raises:
        UnreadableCommitError: it is not one that this program writes.
    """
    try:
        return PlanCommit.model_validate_json(body)
    except ValidationError as exc:
        raise UnreadableCommitError(
            checked=f"the commit of run {run_id} in the inbox",
            expected="what was taken as a commit",
            found=f"another shape at {', '.join(sorted({'.'.join(map(str, fault['loc'])) for fault in exc.errors()}))}",
            next_action="run 'apply-ledger verify', and find out who changed it",
        ) from None  # the values stay out of the message


def _check_position(commit: PlanCommit, head: int) -> None:
    """A position ahead of the log would switch off the search for what was written since the plan was made."""
    if commit.ledger_position is not None and commit.ledger_position > head:
        raise UnknownPositionError(
            checked=f"the ledger position at which the plan of run {commit.run_id} was made",
            expected=f"at most {head}, the last event of {commit.binding} in this ledger",
            found=str(commit.ledger_position),
            next_action="make a fresh plan with this ledger",
        )


def _submission(row: BindingRow, commit: PlanCommit) -> tuple[Any, ...]:
    """What the database's function is called with."""
    event = new_event(
        "plan.committed",
        PlanCommitted(commit=commit),
        url=row.url,
        branch=row.branch,
        run_id=commit.run_id,
        n=commit.commit_id,
    )
    body = commit.canonical_bytes().decode()
    return (row.id, uuid.uuid4(), body, event.event_id, SCHEMA_VERSION, event.body.decode())


def _receipt(row: Any) -> Receipt:
    return Receipt(order_id=row["order_id"], inbox_id=row["inbox_id"], first=row["first"], position=row["position"])


def _order(row: Any) -> Order:
    return Order(
        inbox_id=row["inbox_id"],
        order_id=row["order_id"],
        kind=row["kind"],
        run_id=row["run_id"],
        state=row["state"],
        body=json.loads(row["body"]),
        position=row["position"],
        received_at=row["received_at"],
    )
