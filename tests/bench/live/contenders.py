"""The two programs as a person starts them: commands, each a process, that bring an inventory onto a branch."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tests.bench.live.inventory import Inventory
from tests.bench.live.processes import Need, run_measured
from tests.live.infrahub import LiveBranch
from tests.live.program import LiveProgram

_FOREIGN = ("INFRAHUB", "APPLY_LEDGER", "PYTHON")


class Contender(Protocol):
    """One of the programs that are compared."""

    label: str

    async def prepare(self, inventory: Inventory, rows: Path, branch: LiveBranch) -> None:
        """What is done once and not timed."""
        ...

    async def bring(self, inventory: Inventory, rows: Path, branch: LiveBranch, *, url: str) -> Need:
        """Bring everything onto the branch, over ``url``; what it needed."""
        ...


@dataclass
class Ours:
    """``plan`` and ``apply``: every operation is durable before it is sent, every outcome before the next one."""

    folder: Path
    database: Path
    program: Path
    label: str = "apply-ledger plan + apply"
    _runs: int = 0

    async def prepare(self, inventory: Inventory, rows: Path, branch: LiveBranch) -> None:
        """Nothing: the ledger's database is up, as it is where the program is a service."""

    async def bring(self, inventory: Inventory, rows: Path, branch: LiveBranch, *, url: str) -> Need:
        """Two commands; the plan that is applied is the one that was made."""
        self._runs += 1
        folder = self.folder / f"ours-{inventory.name}-{self._runs}"
        folder.mkdir(parents=True)
        # a schema that an earlier round has kept would be half a second's start over the other one, which keeps none
        cold = {"XDG_CACHE_HOME": str(folder / "cache")}
        environment = LiveProgram(folder, self.database, branch).environment | {"INFRAHUB_ADDRESS": url} | cold
        configuration = inventory.ours(folder / "sync.yml", rows)
        printed, planning = await self._command(folder, environment, "plan", "--config-file", str(configuration))
        planned = json.loads(printed)
        expected = ("--expected-checksum", planned["plan_checksum"])
        printed, applying = await self._command(folder, environment, "apply", planned["run"], *expected)
        summary = json.loads(printed)
        if summary["state"] != "applied" or summary["applied"] != planned["counts"]["create"]:
            raise RuntimeError(f"the bench's own run ended otherwise: {printed}")
        return planning + applying

    async def _command(self, folder: Path, environment: Mapping[str, str], *arguments: str) -> tuple[str, Need]:
        program = (str(self.program), *arguments, "--output", "json")
        return await run_measured(program, folder=folder, environment=environment, report=folder / "need.json")


@dataclass
class Theirs:
    """``infrahub-sync sync`` with its own defaults; what ``generate`` writes is made once, outside the time."""

    folder: Path
    program: Path
    label: str = "infrahub-sync sync"
    _runs: int = 0

    async def prepare(self, inventory: Inventory, rows: Path, branch: LiveBranch) -> None:
        """Let it write its models for this mapping."""
        home = self._home(inventory)
        home.mkdir(parents=True)
        await self._command(home, inventory, rows, branch, branch.url, "generate")

    async def bring(self, inventory: Inventory, rows: Path, branch: LiveBranch, *, url: str) -> Need:
        """One command."""
        self._runs += 1
        folder = self._home(inventory) / f"run-{self._runs}"  # its cache remembers earlier runs of a folder
        folder.mkdir()
        return await self._command(folder, inventory, rows, branch, url, "sync")

    def _home(self, inventory: Inventory) -> Path:
        return self.folder / f"theirs-{inventory.name}"

    async def _command(
        self, folder: Path, inventory: Inventory, rows: Path, branch: LiveBranch, url: str, command: str
    ) -> Need:
        # generated models are looked for beside the configuration
        configuration = inventory.theirs(self._home(inventory) / "sync.yml", rows, url=url, token=branch.token)
        arguments = (str(self.program), command, "--config-file", str(configuration), "--branch", branch.name)
        _, need = await run_measured(arguments, folder=folder, environment=_environment(), report=folder / "need.json")
        return need


def _environment() -> dict[str, str]:
    """Nothing of the user's that either program would read."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_FOREIGN) and not name.lower().endswith("_proxy")
    }
