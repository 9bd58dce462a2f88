"""Delivers a commit to the writer: into the inbox, or to the topic from which an intake moves it there.

From the inbox on, both ways are the same. They differ in when the result is known: the inbox says at once what
became of a commit, a broker only that it has the message.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text

from ledger.cli.destinations import binding_to_write
from ledger.cli.output import people
from ledger.cli.session import ledger_exists, open_ledger
from ledger.commit import Policy
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from uuid import UUID

    from ledger.cli.settings import Settings
    from ledger.commit import PlanCommit, PolicyChanges
    from ledger.store.ledger import BindingRow, Ledger, Receipt
    from ledger.store.records import MessagePlace

_LOOK_EVERY = 0.1
_SAY_AFTER = 3.0


class CommitNotTakenError(ApplyLedgerError):
    """The commit is on its topic, and no intake has taken it yet; it is not lost."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


class PublishedCommitRefusedError(ApplyLedgerError):
    """The intake recorded that this commit cannot become an order; nothing is written."""

    exit_code: ClassVar[ExitCode] = ExitCode.REFUSED


@dataclass(frozen=True, slots=True)
class PlacedCommit:
    """A commit and where it is: ``receipt`` from the inbox, or ``place`` on the topic."""

    commit: PlanCommit
    receipt: Receipt | None = None
    place: MessagePlace | None = None

    @property
    def is_new(self) -> bool:
        """Whether this commit was not in the inbox before."""
        return self.receipt is None or self.receipt.first


async def place_commit(settings: Settings, commit: PlanCommit) -> PlacedCommit:
    """Publish a commit where Kafka is configured, else write it into the inbox.

    A commit that the inbox holds already is answered by it, also where Kafka is configured: publishing again would only
    get the same answer later. Where this host has no ledger, a commit is published without asking one.

    Raises:
        ConfigurationError: the destination is not declared, or what Kafka needs is missing.
        ArtifactStoreAwayError, ArtifactInStoreDiffersError: the run cannot be put where writers look for it.
        PublishError: it was not published, or whether it was is unknown; doing it again is safe.
        StoreError: the inbox refused it, or cannot be reached.
    """
    if not settings.kafka.is_configured or ledger_exists(settings):
        async with open_ledger(settings) as ledger:
            return await place_commit_in(settings, ledger, commit)
    commit = commit.model_copy(update={"binding": settings.declared(commit.binding).binding})
    await _into_store(settings, commit)
    return PlacedCommit(commit, place=await _published(settings, commit))


async def place_commit_in(settings: Settings, ledger: Ledger, commit: PlanCommit) -> PlacedCommit:
    """The same with a ledger that is open; raises as :func:`place_commit`."""
    commit = await _to_declared(settings, ledger, commit)
    if not settings.kafka.is_configured:
        await _into_store(settings, commit)
        return PlacedCommit(commit, await ledger.submit_commit(await ledger.register_binding(commit.binding), commit))
    receipt = await _answered_before(ledger, commit)
    if receipt is not None:
        return PlacedCommit(commit, receipt)
    await _into_store(settings, commit)
    return PlacedCommit(commit, place=await _published(settings, commit))


async def _into_store(settings: Settings, commit: PlanCommit) -> None:
    """Store a run where writers look for it, before it is committed."""
    root = settings.artifact_root
    if isinstance(root, Path):
        return
    from producers.stored_runs import store_run

    if await asyncio.to_thread(store_run, root, settings.cache_dir, commit):
        people.print(f"run {commit.run_id} is stored at {root}/{commit.artifact}")


async def order_resume(
    settings: Settings,
    ledger: Ledger,
    row: BindingRow,
    run_id: str,
    *,
    by: str,
    reason: str,
    changes: PolicyChanges,
    order_id: UUID | None = None,
) -> tuple[Receipt, Policy]:
    """Order a run to be resumed under the policy of its commit with these changes, if its destination is declared here.

    Returns:
        The receipt, and the policy.

    Raises:
        ConfigurationError: the destination is not declared.
        StoreError: the inbox refused it, or cannot be reached.
    """
    await binding_to_write(settings, ledger, row.binding)
    commit = await ledger.run_commit(row.id, run_id)  # none, and the order below is refused by name
    policy = changes.over(Policy() if commit is None else commit.policy)
    receipt = await ledger.submit_resume(row.id, run_id=run_id, by=by, reason=reason, policy=policy, order_id=order_id)
    return receipt, policy


async def until_taken(settings: Settings, placed: PlacedCommit) -> None:
    """Wait until the inbox holds a published commit; at once where it does.

    Raises:
        PublishedCommitRefusedError: an intake refused it; its findings are named.
        CommitNotTakenError: no intake did anything with it in time.
    """
    if placed.place is None:
        return
    began, said = time.monotonic(), False
    async with open_ledger(settings) as ledger:
        while not await _is_taken(ledger, placed.commit):
            reason = await ledger.message_refusal(placed.place)
            if reason is not None:
                raise _refused(placed.commit, placed.place, reason)
            waited = time.monotonic() - began
            if waited > settings.kafka.taken_within:
                raise _not_taken(placed.commit, placed.place, waited)
            if waited > _SAY_AFTER and not said:
                said = True
                people.print(
                    Text.assemble(
                        ("waiting: ", "yellow"),
                        f"the commit is message {placed.place}; an intake (`apply-ledger work`) takes it from there",
                    )
                )
            await asyncio.sleep(_LOOK_EVERY)


async def _to_declared(settings: Settings, ledger: Ledger, commit: PlanCommit) -> PlanCommit:
    return commit.model_copy(update={"binding": await binding_to_write(settings, ledger, commit.binding)})


async def _answered_before(ledger: Ledger, commit: PlanCommit) -> Receipt | None:
    row = await ledger.binding(commit.binding)
    if row is None or await ledger.run_commit(row.id, commit.run_id) is None:
        return None
    return await ledger.submit_commit(row.id, commit)


async def _published(settings: Settings, commit: PlanCommit) -> MessagePlace:
    from producers.publish import CommitPublisher

    async with CommitPublisher(settings.kafka.publish_settings()) as publisher:
        return await publisher.publish(commit)


async def _is_taken(ledger: Ledger, commit: PlanCommit) -> bool:
    row = await ledger.binding(commit.binding)
    return row is not None and await ledger.run_commit(row.id, commit.run_id) is not None


def _refused(commit: PlanCommit, place: MessagePlace, reason: str) -> PublishedCommitRefusedError:
    return PublishedCommitRefusedError(
        checked=f"the commit of run {commit.run_id}, message {place}",
        expected="that the intake takes it",
        found=reason,
        next_action="fix the stated cause, then commit again; nothing was written",
    )


def _not_taken(commit: PlanCommit, place: MessagePlace, seconds: float) -> CommitNotTakenError:
    return CommitNotTakenError(
        checked=f"the commit of run {commit.run_id}, message {place}",
        expected="that an intake takes it into the inbox",
        found=f"no intake has taken it within {seconds:.0f} s",
        next_action="start `apply-ledger work` with these brokers; the commit waits on its topic, and committing it"
        " again is one order",
    )
