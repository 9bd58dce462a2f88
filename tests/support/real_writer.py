"""A writer on a real ledger and an Infrahub, mostly a sandbox: commits, orders, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, declared
from consumers.infrahub.sandbox import JournalEntry, RunningSandbox
from consumers.settings import WriterSettings
from consumers.stores import postgres_connector
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from ledger.commit import PlanCommit, Policy
from ledger.destination import DestinationOpener
from ledger.events import OUTCOME_KINDS, StoredEvent
from ledger.plan.model import PlannedOperation
from ledger.store.ledger import Ledger
from tests.support.committed_plans import CREATED_AT, SOURCE, commit_of, in_order, save

REAL_SCHEMA = Path(__file__).parents[1] / "data" / "schema-api.json"
TOKEN = "sandbox-token"


def short_times(root: Path, **changes: Any) -> WriterSettings:
    """Times that make each case take seconds."""
    values: dict[str, Any] = {
        "artifact_root": root,
        "lease_ttl": 2.0,
        "request_timeout": 1.0,
        "margin": 0.2,
        "settle_seconds": 0.3,
        "converge_wait": 0.05,
        "poll_interval": 0.05,
        "stop_poll_interval": 0.0,
        "open_attempts": 2,
        "open_retry_wait": 0.05,
    }
    return WriterSettings(**(values | changes))


def settings_for(url: str, branch: str, token: str, request_timeout: float) -> InfrahubSettings:
    """Settings of one branch of a sandbox; what provably never ran is tried twice, without waiting."""
    return InfrahubSettings(
        url=url, branch=branch, token=SecretStr(token), request_timeout=request_timeout, attempts=2, retry_wait=0.01
    )


def opener_for(url: str, branch: str, token: str, request_timeout: float) -> InfrahubOpener:
    """The real client for one branch of a sandbox."""
    return InfrahubOpener(declared(settings_for(url, branch, token, request_timeout)))


@dataclass(kw_only=True)
class WriterOnLedger:
    """One branch of an Infrahub, its binding in a real ledger, and an artifact root."""

    dsn: str
    ledger: Ledger
    url: str
    token: str
    branch: str
    root: Path
    changes: dict[str, Any] = field(default_factory=dict)

    @property
    def binding(self) -> DestinationBinding:
        """The destination."""
        return DestinationBinding(url=self.url, branch=self.branch)

    @property
    def settings(self) -> WriterSettings:
        """Short times."""
        return short_times(self.root, **self.changes)

    async def binding_id(self) -> int:
        """The binding's row."""
        return await self.ledger.register_binding(self.binding)

    @property
    def destination(self) -> InfrahubSettings:
        """How the branch is reached."""
        return settings_for(self.url, self.branch, self.token, self.settings.request_timeout)

    def writer(self, opener: DestinationOpener | None = None, *, dsn: str | None = None, **more: Any) -> BindingWriter:
        """A new writer in this process; by default with the real client, straight to the database."""
        settings = self.settings
        return BindingWriter(
            dsn or self.dsn,
            self.binding,
            opener or InfrahubOpener(declared(self.destination)),
            settings,
            connect=postgres_connector(settings, allow_unsafe_fsync=True),
            **more,
        )

    async def commit(
        self,
        run_id: str,
        operations: Sequence[PlannedOperation],
        *,
        source: str = SOURCE,
        policy: Policy | None = None,
        position: int = 0,
        created_at: datetime = CREATED_AT,
    ) -> list[PlannedOperation]:
        """Save a plan and commit it; returns the operations in stored order."""
        ordered = in_order(operations)
        run_dir = save(self.root, run_id, ordered, source=source, binding=self.binding, created_at=created_at)
        await self.submit(
            commit_of(self.root, run_dir, binding=self.binding, policy=policy, ledger_position=position, source=source)
        )
        return ordered

    async def submit(self, commit: PlanCommit) -> None:
        """Put a commit into the inbox."""
        await self.ledger.submit_commit(await self.binding_id(), commit)

    async def resume(self, run_id: str, policy: Policy | None = None) -> None:
        """Order a run to go on."""
        await self.ledger.submit_resume(
            await self.binding_id(), run_id=run_id, by="grace", reason="looked at it", policy=policy or Policy()
        )

    async def head(self) -> int:
        """The binding's position now."""
        row = await self.ledger.binding(self.binding)
        return 0 if row is None else row.head_position

    async def events(self, run_id: str | None = None) -> list[StoredEvent]:
        """What is recorded."""
        return [event async for event in self.ledger.events(await self.binding_id(), run_id=run_id)]

    async def kinds(self, run_id: str) -> list[str]:
        """The kinds of a run's events."""
        return [event.kind for event in await self.events(run_id)]

    async def outcomes(self, run_id: str) -> list[tuple[int | None, str, int | None]]:
        """Ordinal, outcome and attempt of all that is recorded of a run's operations, in stored order."""
        found = await self.events(run_id)
        return [(e.ordinal, e.kind.removeprefix("operation."), e.attempt) for e in found if e.kind in OUTCOME_KINDS]

    async def body(self, run_id: str, kind: str) -> dict[str, Any]:
        """The body of the last event of a kind."""
        found: dict[str, Any] = json.loads([e.body for e in await self.events(run_id) if e.kind == kind][-1])
        return found


@dataclass(kw_only=True)
class RealWriter(WriterOnLedger):
    """The same on a sandbox, whose journal and store can be looked at."""

    sandbox: RunningSandbox
    url: str = ""
    token: str = TOKEN

    def __post_init__(self) -> None:
        self.url = self.url or self.sandbox.url

    def sent(self, *, after: int = 0) -> list[JournalEntry]:
        """The mutations of this branch that arrived at the destination, behind a position of its journal."""
        return [entry for entry in self.sandbox.journal.entries(after=after) if entry.branch == self.branch]

    def content(self) -> list[dict[str, Any]]:
        """What the branch holds, without ids and times."""
        return self.sandbox.store.content(branch=self.branch)
