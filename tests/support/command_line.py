"""The program as a person meets it: a process of its own, a folder, a sandbox and an embedded database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumers.infrahub.sandbox.server import RunningSandbox
from tests.support.warm_program import warm_program

PROGRAM = (sys.executable, "-m", "ledger.cli.main")
TOKEN = "canary-1f6b2c90-token"  # a secret that must never be seen in any output

CONFIGURATION = """
name: tags
source:
  name: jsonl
  settings: {directory: data}
destination:
  name: infrahub
schema_mapping:
  - name: BuiltinTag
    mapping: tags
    identifiers: [name]
    fields:
      - {name: name, mapping: name}
      - {name: description, mapping: description}
"""


@dataclass
class CommandLine:
    """One folder with a source of tags, and the program called in it."""

    folder: Path
    sandbox: RunningSandbox
    branch: str
    data_dir: Path
    variables: dict[str, str] = field(default_factory=dict)
    """Environment variables of every call, beside those that a test needs to be alone."""

    @property
    def environment(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("INFRAHUB", "APPLY_LEDGER"))}
        return {
            **kept,
            "INFRAHUB_ADDRESS": self.sandbox.url,
            "INFRAHUB_DEFAULT_BRANCH": self.branch,
            "INFRAHUB_API_TOKEN": TOKEN,
            "INFRAHUB_SYNC_CACHE_DIR": str(self.folder / "runs"),
            "APPLY_LEDGER_DATA_DIR": str(self.data_dir),
            "APPLY_LEDGER_WRITER__LEASE_TTL": "6",
            "APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": "2",
            "APPLY_LEDGER_WRITER__MARGIN": "1",
            "APPLY_LEDGER_WRITER__SETTLE_SECONDS": "0.3",
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "COLUMNS": "200",
            **self.variables,
        }

    def source(self, *rows: dict[str, Any]) -> None:
        """Write the source's rows and its configuration file."""
        (self.folder / "data").mkdir(exist_ok=True)
        lines = "".join(json.dumps({"id": str(number), **row}) + "\n" for number, row in enumerate(rows))
        (self.folder / "data" / "tags.jsonl").write_text(lines, encoding="utf-8")
        (self.folder / "config.yml").write_text(CONFIGURATION, encoding="utf-8")

    def mutations(self) -> int:
        """How many writes the destination has received on this branch."""
        return sum(entry.branch == self.branch for entry in self.sandbox.journal.entries())

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A process of the program as a person starts it, to be killed, stopped and asked."""
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command to its end."""
        done = warm_program().run(arguments, cwd=self.folder, env={**self.environment, **environment}, timeout=90)
        assert TOKEN not in done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def plan(self, *options: str) -> dict[str, Any]:
        done = self.run("plan", "--config-file", "config.yml", "--output", "json", *options)
        assert done.returncode == 0, done.stderr
        planned: dict[str, Any] = json.loads(done.stdout)
        return planned

    def apply(self, planned: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
        checksum = planned["plan_checksum"]
        return self.run("apply", planned["run"], "--expected-checksum", checksum, "--output", "json", *options)

    @staticmethod
    def summary(done: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
        """The run's summary that a command printed before it ended with this code."""
        assert done.returncode == code, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary
