"""One sync as a whole: rows of a source, a plan against the sandbox, its commit, and the writer that carries it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from consumers.infrahub.connection import open_reader
from consumers.infrahub.settings import InfrahubSettings
from consumers.runs import RunOutcome
from ledger.commit import PlanCommit, Policy
from producers.commit import build_commit
from producers.planning import PlannedRun, PlanOptions, make_plan
from tests.support.planning import CLOCK, Rows, small
from tests.support.real_writer import TOKEN, RealWriter


@dataclass
class SyncBench:
    """A source of one name with its mapping; the destination and the ledger are those of the writer."""

    real: RealWriter
    mapping: Sequence[Mapping[str, Any]]
    name: str = "small"

    async def plan(self, rows: Rows, **options: Any) -> PlannedRun:
        """Read both sides and save the plan; the ledger's position is that before the reading."""
        loaded = small(self.real.root, rows, self.mapping, name=self.name)
        settings = InfrahubSettings.model_validate(
            {"url": self.real.sandbox.url, "branch": self.real.branch, "token": TOKEN}
        )
        chosen = PlanOptions(**{"ledger_position": await self.real.head(), **options})
        async with open_reader(settings) as reader:
            return await make_plan(loaded, reader, root=self.real.root, options=chosen, clock=CLOCK, environ={})

    def order(self, run: PlannedRun, policy: Policy | None = None) -> PlanCommit:
        """The commit as the committer makes it."""
        return build_commit(run.run_dir, actor="ada", reason="", policy=policy or Policy(), clock=CLOCK)

    async def apply(self, run: PlannedRun, policy: Policy | None = None) -> RunOutcome:
        """Commit it and be the writer until it has ended."""
        await self.real.submit(self.order(run, policy))
        return await self.real.writer().drain(run.run_id, by="ada")
