"""A run in an audit: its plan, re-hashed from the stored bytes, beside its outcomes.

Lines and outcomes are read side by side in the plan's order, so that memory does not grow with the plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ledger.audit.bodies import parsed, parsed_object
from ledger.audit.merkle import Frontier
from ledger.audit.outcome_order import PlannedOrder
from ledger.audit.plan_lines import planned_pages, told_by
from ledger.audit.recorded_notes import Seal
from ledger.audit.report import LevelReport
from ledger.audit.run_traces import RunTrace
from ledger.audit.source import AuditSource
from ledger.events import OUTCOME_KINDS, StoredEvent
from ledger.plan.checksum import checksummed_body
from ledger.store.records import StoredArtifact, StoredOperation, StoredPlan

_KEY_SIZE = 32
_SUCCESSES = frozenset({"operation.applied", "operation.skipped"})


@dataclass(slots=True)
class _Line:
    """The operation at which the walk stands."""

    ordinal: int
    operation_id: str
    action: str
    done: bool = False


@dataclass(slots=True)
class RunAudit:
    """Audits one run against what is stored for it."""

    ledger: AuditSource
    binding_id: int
    head_position: int
    trace: RunTrace
    plans: LevelReport
    outcomes: LevelReport
    seals: Mapping[str, Sequence[Seal]] = field(default_factory=dict)

    async def run(self) -> str | None:
        """Check the plan's bytes and walk the outcomes along its lines; returns the checksum that is stored for it."""
        await self._details()
        await self._order()
        artifact = await self.ledger.stored_artifact(self.binding_id, self.trace.run_id)
        if artifact is None:
            self._without_artifact()
            return None
        await self._plan(artifact)
        return artifact.checksum

    async def _plan(self, artifact: StoredArtifact) -> None:
        document = parsed_object(artifact.manifest)
        stored = await self.ledger.plan(artifact.checksum)
        if document is None or stored is None:
            self._wrong_plan("whether its plan is stored", "a plan", "none" if stored is None else "no manifest")
            return
        self.plans.checked += 1
        body = checksummed_body(document)
        self._same("the stored body of the manifest", body.decode(), stored.body.decode(), quote=False)
        count = await self._lines(artifact, body)
        self._same("the number of its lines", str(stored.operations_count), str(count))
        self._same("the seals of its plan", "1", str(stored.seals))
        covered = await self._coverage(artifact.checksum, document, stored)
        await self._places(artifact.checksum, count, covered)
        if self.trace.commit is not None:
            self._commit(artifact, count)

    def _without_artifact(self) -> None:
        if self.trace.started or self.trace.outcomes:
            self._wrong_plan("whether its plan is stored", "the plan that was applied", "none")
        else:
            self.plans.skip(f"run {self.trace.run_id}: never verified, so no plan was stored")

    async def _lines(self, artifact: StoredArtifact, body: bytes) -> int:
        """Hash every line, with the outcomes beside them; returns how many lines there are."""
        checksum, digest = hashlib.sha256(body), hashlib.sha256(artifact.manifest)
        seals, tree = self.seals.get(artifact.checksum, ()), Frontier()
        planned, count = PlannedOrder(self.trace.order.count), 0
        async for lines, names, keys in planned_pages(self.ledger, artifact.checksum):
            data = b"".join(lines)
            checksum.update(data)
            digest.update(data)
            if seals:
                tree.extend(lines)
            told, told_keys, records = told_by(lines, data)
            if told != list(names) or told_keys != list(keys):
                self._beside(count, list(zip(told, names, told_keys, keys, strict=True)))
            planned.take(records)
            count += len(lines)
        await self._outcomes(artifact, planned, count)
        self._same("the plan checksum", artifact.checksum, checksum.hexdigest())
        self._same("the artifact digest", artifact.digest, digest.hexdigest())
        for seal in seals:
            self._same("the root of its seal", seal.lines_root, tree.root().hex())
            self._same("the number of operations of its seal", str(seal.operations_count), str(tree.size))
        return count

    async def _outcomes(self, artifact: StoredArtifact, planned: PlannedOrder, count: int) -> None:
        """The outcomes of a run that went well are known to be right by now; others are walked along the lines."""
        order, applied = self.trace.order, self.trace.last_end == "run.applied"
        if order.is_order_of(planned):
            self.outcomes.checked += order.count
            self.require_whole(order.count, count, applied)
            return
        walk = _Walk(self, self.ledger.stored_operations(artifact.checksum))
        async for event in self.ledger.events(self.binding_id, until=self.head_position, run_id=self.trace.run_id):
            if event.kind in OUTCOME_KINDS:
                await walk.take(event)
        await walk.finish(applied)

    def require_whole(self, successes: int, lines: int, applied: bool) -> None:
        """An applied run has no operation without a success (P114, P147)."""
        if applied and successes != lines:
            self.outcomes.add(
                "RunNotWhole",
                checked=f"run {self.trace.run_id}, which ended as applied",
                expected=f"{lines} operations applied or skipped",
                found=f"{successes}",
                position=self.trace.committed_at or None,
            )

    async def _coverage(self, checksum: str, document: dict[str, Any], stored: StoredPlan) -> int:
        """Hash the coverage; returns how many lines it has."""
        recorded, count = document.get("coverage"), stored.coverage_count
        if recorded is None and count is None and stored.coverage_digest is None:
            return 0
        digest, seen = hashlib.sha256(), 0
        async for line in self.ledger.stored_coverage(checksum):
            digest.update(line)
            seen += 1
        expected = recorded.get("digest") if isinstance(recorded, dict) else "no coverage"
        self._same("the coverage digest", str(expected), digest.hexdigest())
        self._same("the coverage digest beside the plan", digest.hexdigest(), str(stored.coverage_digest))
        self._same("the number of its coverage lines", str(count), str(seen))
        return seen

    async def _places(self, checksum: str, lines: int, coverage: int) -> None:
        """Outcomes find their lines by ordinal: each is its line's turn, and no row hides behind the end of a page."""
        rows = await self.ledger.plan_rows(checksum)
        if rows is None:
            return
        self._same("the rows of its lines", str(lines), str(rows.operations))
        self._same("its lines at another ordinal than their turn", "0", str(rows.operations_misplaced))
        self._same("the rows of its coverage", str(coverage), str(rows.coverage))
        self._same("its coverage lines at another ordinal than their turn", "0", str(rows.coverage_misplaced))

    def _commit(self, artifact: StoredArtifact, count: int) -> None:
        commit = self.trace.commit
        if commit is not None:
            self._same("the plan checksum of its commit", commit.plan_checksum, artifact.checksum)
            self._same("the artifact digest of its commit", commit.artifact_digest, artifact.digest)
            self._same("the operations count of its commit", str(commit.operations_count), str(count))
            self._same("the source of its commit", commit.source, artifact.source)

    async def _order(self) -> None:
        """Who wrote an object is looked up through the inbox, so its row must be the commit of the log."""
        commit = self.trace.commit
        if commit is None:
            return
        order = await self.ledger.committed_order(self.binding_id, self.trace.run_id)
        if order is None:
            self._wrong_plan("the inbox's row of its commit", "one", "none")
            return
        body = hashlib.sha256(order.body).hexdigest()
        self._same("the inbox's commit", commit.digest.hex(), body, quote=False)
        self._same("the inbox's commit id", commit.commit_id, order.commit_id)
        self._same("the inbox's plan checksum", commit.plan_checksum, order.plan_checksum)
        self._same("the inbox's artifact digest", commit.artifact_digest, order.artifact_digest)
        self._same("the inbox's source", commit.source, order.source)
        self._same("the inbox's position", str(self.trace.committed_at), str(order.position))

    def _beside(self, first: int, rows: Sequence[tuple[bytes, bytes, bytes, bytes]]) -> None:
        """An operation is looked up by the columns beside its line, so they must be those of the line."""
        for ordinal, (told, name, told_key, key) in enumerate(rows, first):
            self._same(f"the id beside operation {ordinal}", _shown(told), _shown(name))
            self._same(f"the object key beside operation {ordinal}", _hex(told_key), _hex(key))

    async def _details(self) -> None:
        for cut in self.trace.cuts:
            data = await self.ledger.detail(cut.sha256)
            found = "none" if data is None else hashlib.sha256(data).hexdigest()
            self._same("a list that stands apart", cut.sha256, found)

    def _same(self, what: str, expected: str, found: str, *, quote: bool = True) -> None:
        if expected != found:
            hint = (expected, found) if quote else ("the bytes that were recorded with it", "other bytes")
            self._wrong_plan(what, *hint)

    def _wrong_plan(self, what: str, expected: str, found: str) -> None:
        self.plans.add(
            "StoredPlanMismatch",
            checked=f"run {self.trace.run_id}: {what}",
            expected=expected,
            found=found,
            position=self.trace.committed_at or None,
        )


@dataclass(slots=True)
class _Walk:
    """Outcomes along the lines: in the plan's order, each line decided before the next one is begun (P112, P120)."""

    audit: RunAudit
    lines: AsyncIterator[StoredOperation]
    at: _Line | None = None
    lines_seen: int = 0
    successes: int = 0

    async def take(self, event: StoredEvent) -> None:
        """One outcome."""
        self.audit.outcomes.checked += 1
        ordinal = -1 if event.ordinal is None else event.ordinal
        while self.at is None or self.at.ordinal < ordinal:
            if self.at is not None and not self.at.done:
                self._wrong(event, f"a success of operation {self.at.ordinal} before it", "none")
            if not await self._advance():
                break
        line = self.at
        if line is None or line.ordinal != ordinal:
            where = "no operation" if line is None or ordinal > line.ordinal else f"operation {line.ordinal} begun"
            self._wrong(event, f"an operation of the plan at {ordinal}, not yet passed", where)
        elif line.operation_id != event.operation_id:
            self._wrong(event, f"operation {line.operation_id}", f"operation {event.operation_id}")
        elif line.done:
            self._wrong(event, "no outcome after a success", event.kind)
        elif line.action == "delete" and event.kind == "operation.applied":
            self._wrong(event, "a recorded delete that is skipped", event.kind)
        elif event.kind in _SUCCESSES:
            line.done = True
            self.successes += 1

    async def finish(self, applied: bool) -> None:
        """Read the lines without outcomes, which an applied run has not."""
        while await self._advance():
            pass
        self.audit.require_whole(self.successes, self.lines_seen, applied)

    async def _advance(self) -> bool:
        stored = await anext(self.lines, None)
        if stored is None:
            return False
        # An unreadable line has no id; that it was changed shows in the hash anyway, and so does another spelling.
        record = parsed(stored.line)
        record = record if isinstance(record, dict) else {}
        self.at = _Line(self.lines_seen, str(record.get("operation_id")), str(record.get("action")))
        self.lines_seen += 1
        return True

    def _wrong(self, event: StoredEvent, expected: str, found: str) -> None:
        self.audit.outcomes.add(
            "OutcomeMismatch",
            checked=f"the outcome at position {event.position} of run {self.audit.trace.run_id}",
            expected=expected,
            found=found,
            position=event.position,
        )


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _hex(key: bytes) -> str:
    return key.hex() if len(key) == _KEY_SIZE else _shown(key)
