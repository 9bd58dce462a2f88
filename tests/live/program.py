"""The program as a person meets it, in front of a real Infrahub: processes, a folder and an embedded database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.plan.model import PlannedOperation
from ledger.plan.reader import PlanArtifact, load_plan_artifact
from tests.live.infrahub import LiveBranch
from tests.support.warm_program import warm_program

_LONGEST_COMMAND = 3600.0  # seconds: a whole inventory


@dataclass(frozen=True)
class LiveProgram:
    """Commands of apply-ledger on one branch; artifacts below ``folder``, the ledger in ``database``."""

    folder: Path
    database: Path
    branch: LiveBranch
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, beside those that name the destination."""

    @property
    def _artifacts(self) -> Path:
        return self.folder / "runs"

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the user's; the branch under test as the destination."""
        foreign = ("INFRAHUB", "APPLY_LEDGER")
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(foreign) and not name.lower().endswith("_proxy")
        }
        return kept | {
            "INFRAHUB_ADDRESS": self.branch.url,
            "INFRAHUB_DEFAULT_BRANCH": self.branch.name,
            "INFRAHUB_API_TOKEN": self.branch.token,
            "INFRAHUB_SYNC_CACHE_DIR": str(self._artifacts),
            "APPLY_LEDGER_DATA_DIR": str(self.database),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_CACHE_HOME": str(self.database.parent / "cache"),
            **self.variables,
        }

    def plan(self, configuration: Path, *options: str) -> dict[str, Any]:
        """Make a plan; what the command says of it."""
        planned: dict[str, Any] = json.loads(self._run("plan", "--config-file", str(configuration), *options))
        return planned

    def operations(self, planned: dict[str, Any]) -> tuple[PlannedOperation, ...]:
        """The operations of a plan as stored."""
        return tuple(self.artifact(planned).operations)

    def artifact(self, planned: dict[str, Any]) -> PlanArtifact:
        """A plan as stored."""
        return load_plan_artifact(self._artifacts / planned["run"])

    def rehearse(self, planned: dict[str, Any]) -> dict[str, Any]:
        """Rehearse a plan of which nothing is refused; what is said of it."""
        rehearsed: dict[str, Any] = json.loads(self._run("rehearse", planned["run"]))
        return rehearsed

    def apply(self, planned: dict[str, Any]) -> dict[str, Any]:
        """Commit exactly this plan and apply it; the run's summary."""
        options = ("--expected-checksum", planned["plan_checksum"])
        summary: dict[str, Any] = json.loads(self._run("apply", planned["run"], *options))
        return summary

    def events(self, planned: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """What is recorded of a run."""
        yield from json.loads(self._run("replay", "--run", planned["run_id"]))

    def drill(self, onto: LiveBranch) -> dict[str, Any]:
        """Rebuild on another branch what is recorded of this one; what came of it."""
        record = ("--url", self.branch.url, "--record-branch", self.branch.name)
        printed = self._run("replay", "--onto", onto.url, "--branch", onto.name, *record)
        said: dict[str, Any] = json.loads(printed)
        return said

    def holds(self) -> bool:
        """Whether the ledger proves itself."""
        return all(report["holds"] for report in json.loads(self._run("verify")))

    def _run(self, *arguments: str) -> str:
        command = (*arguments, "--output", "json")
        done = warm_program().run(command, cwd=self.folder, env=self.environment, timeout=_LONGEST_COMMAND)
        if done.returncode != 0:
            raise AssertionError(f"apply-ledger {' '.join(arguments)} ended with {done.returncode}\n{done.stderr}")
        return done.stdout
