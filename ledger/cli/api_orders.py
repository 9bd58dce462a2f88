"""Orders that come over HTTP: the same code as the commands, with a ledger that stays open."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ledger import spans
from ledger.api.errors import IdempotencyConflictError, NotThereError, not_there
from ledger.api.models import Receipt
from ledger.cli.committing import PlacedCommit, order_resume, place_commit_in
from ledger.cli.known_secrets import refuse_secrets
from ledger.cli.reasons import require_reason
from ledger.cli.run_lookup import RunNotFoundError, find_run_directory

if TYPE_CHECKING:
    from ledger.api.orders import CommitOrder, ResumeOrder, RunName, StopOrder
    from ledger.cli.settings import Settings
    from ledger.commit import PlanCommit
    from ledger.store.ledger import BindingRow, Ledger
    from ledger.store.ledger import Receipt as StoredReceipt


class CommandOrders:
    """Takes orders for the destinations that are declared here. Satisfies :class:`ledger.api.orders.Orders`."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        """``ledger`` needs the writer's rights."""
        self._settings = settings
        self._ledger = ledger

    async def commit(self, order: CommitOrder, *, actor: str, traceparent: str | None) -> Receipt:
        """Commit a plan below this server's root of runs, as ``apply-ledger commit`` does."""
        with spans.span("commit", kind="producer", parent=traceparent) as span:
            built = await asyncio.to_thread(self._built, order, actor, span.traceparent or traceparent)
            span.tell("apply_ledger.run_id", built.run_id)
            placed = await place_commit_in(self._settings, self._ledger, built)
        return await self._placed(placed)

    def _built(self, order: CommitOrder, actor: str, traceparent: str | None) -> PlanCommit:
        from producers.commit import build_commit

        require_reason(self._settings, order.reason)
        refuse_secrets(self._settings, reason=order.reason)
        try:
            folder = find_run_directory(self._settings.cache_dir, order.run)
        except RunNotFoundError:
            # The command says where it looked; who asks from elsewhere need not know this machine's folders.
            raise NotThereError(
                checked=f"the saved plan {order.run} in the folder of runs of this server",
                expected="exactly one folder of a saved plan of this name",
                found="none, or the id alone names those of several sources",
                next_action="name it as SOURCE/RUN, as `apply-ledger plan` printed it; if it was made elsewhere, make"
                " it with the cache_dir of this server, which is relative to where the server was started",
            ) from None
        return build_commit(
            folder,
            actor=actor,
            reason=order.reason,
            policy=order.policy,
            clock=lambda: datetime.now(UTC),
            expected_checksum=order.expected_checksum,
            traceparent=traceparent,
        )

    async def _placed(self, placed: PlacedCommit) -> Receipt:
        row = await self._ledger.binding(placed.commit.binding)
        receipt = placed.receipt
        return Receipt(
            run_id=placed.commit.run_id,
            binding_id=None if row is None else row.id,
            order_id=None if receipt is None else str(receipt.order_id),
            first=None if receipt is None else receipt.first,
            position=None if receipt is None else receipt.position,
            message=None if placed.place is None else str(placed.place),
        )

    async def resume(self, run: RunName, order: ResumeOrder, *, actor: str, order_id: uuid.UUID | None) -> Receipt:
        """Go on with a run, as ``apply-ledger resume --no-wait`` does."""
        require_reason(self._settings, order.reason)
        await asyncio.to_thread(refuse_secrets, self._settings, reason=order.reason)
        row = await self._row(run)
        receipt, policy = await order_resume(
            self._settings,
            self._ledger,
            row,
            run.run_id,
            by=actor,
            reason=order.reason,
            changes=order.policy,
            order_id=order_id,
        )
        wanted = {"by": actor, "policy": policy.model_dump(mode="json"), "reason": order.reason}
        return await self._answered(run, receipt, order_id, wanted)

    async def stop(self, run: RunName, order: StopOrder, *, actor: str, order_id: uuid.UUID | None) -> Receipt:
        """Stop a run, as ``apply-ledger stop`` does."""
        require_reason(self._settings, order.reason)
        await asyncio.to_thread(refuse_secrets, self._settings, reason=order.reason)
        row = await self._row(run)
        receipt = await self._ledger.submit_stop(
            row.id, run_id=run.run_id, by=actor, reason=order.reason, order_id=order_id
        )
        return await self._answered(run, receipt, order_id, {"by": actor, "reason": order.reason})

    async def _answered(
        self, run: RunName, receipt: StoredReceipt, order_id: uuid.UUID | None, wanted: Mapping[str, Any]
    ) -> Receipt:
        """A repeat under the same key must be the same request: the answer of another one would be a lie."""
        if order_id is not None and not receipt.first and receipt.order_id == order_id:
            known = await self._ledger.order(run.binding_id, order_id)
            if known is not None and dict(known.body) != dict(wanted):
                raise IdempotencyConflictError(
                    checked="the header Idempotency-Key",
                    expected="the request that came with this key before",
                    found="another one",
                    next_action="choose a key of its own for each order",
                )
        return Receipt(
            run_id=run.run_id,
            binding_id=run.binding_id,
            order_id=str(receipt.order_id),
            first=receipt.first,
            position=receipt.position,
            message=None,
        )

    async def _row(self, run: RunName) -> BindingRow:
        for row in await self._ledger.bindings():
            if row.id == run.binding_id:
                return row
        raise not_there(f"the binding {run.binding_id}", "list the bindings: GET /api/v1/bindings")
