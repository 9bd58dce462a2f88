"""One folder of an operator: a source, a configuration for each way to give a token, and the program called in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.canary import canaries
from tests.support.warm_program import warm_program

PROGRAM = (sys.executable, "-X", "faulthandler", "-m", "ledger.cli.main")

_CONFIGURATION = """
name: {name}
source:
  name: jsonl
  settings: {{directory: data}}
destination:
  name: infrahub
  settings: {settings}
schema_mapping:
  - name: {kind}
    mapping: {mapping}
    identifiers: [name]
    fields: [{fields}]
"""

TAGS = {"kind": "LabTag", "mapping": "tags", "fields": "{name: name, mapping: name}"}
SAFES = {"kind": "LabSafe", "mapping": "safes", "fields": "{name: name, mapping: name}"}
CODES = {**SAFES, "fields": "{name: name, mapping: name}, {name: code, mapping: code}"}


@dataclass
class Workplace:
    """Runs commands and keeps all that they say."""

    folder: Path
    url: str
    data_dir: Path
    said: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def environment(self) -> dict[str, str]:
        """Of every command: the token, and secrets that are none of the program's business."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        proxy = f"http://operator:{canaries.PROXY}@127.0.0.1:9/"
        return {
            **kept,
            "INFRAHUB_ADDRESS": self.url,
            "INFRAHUB_DEFAULT_BRANCH": "main",
            "INFRAHUB_API_TOKEN": canaries.TOKEN,
            "INFRAHUB_PASSWORD": canaries.OTHER_VARIABLE,
            "INFRAHUB_PROXY": proxy,
            "CLOUD_SECRET_KEY": canaries.OTHER_VARIABLE,
            "HTTP_PROXY": proxy,
            "HTTPS_PROXY": proxy,
            "ALL_PROXY": proxy,
            "INFRAHUB_SYNC_CACHE_DIR": str(self.runs),
            "APPLY_LEDGER_DATA_DIR": str(self.data_dir),
            "APPLY_LEDGER_WRITER__LEASE_TTL": "6",
            "APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": "2",
            "APPLY_LEDGER_WRITER__MARGIN": "1",
            "APPLY_LEDGER_WRITER__SETTLE_SECONDS": "0.2",
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XDG_CACHE_HOME": str(self.folder / "cache"),
            "COLUMNS": "200",
        }

    def prepare(self) -> None:
        """Source rows with a password in them, and the configurations."""
        (self.folder / "data").mkdir()
        self.tags("prod")
        safe = {"id": "1", "name": "main safe", "code": canaries.SOURCE_PASSWORD}
        (self.folder / "data" / "safes.jsonl").write_text(json.dumps(safe) + "\n")
        self._configure("tags", "{}", TAGS)
        self._configure("safes", "{}", SAFES)
        self._configure("codes", "{}", CODES)
        self._configure("own-token", json.dumps({"token": canaries.TOKEN}), TAGS)
        (self.folder / "token").write_text(canaries.TOKEN + "\n")
        (self.folder / "with-file.toml").write_text(f'[[destination]]\nurl = "{self.url}"\ntoken_file = "token"\n')

    def tags(self, *names: str) -> None:
        """What the source holds."""
        rows = [json.dumps({"id": name, "name": name}) + "\n" for name in names]
        (self.folder / "data" / "tags.jsonl").write_text("".join(rows))

    def _configure(self, name: str, settings: str, kind: dict[str, str]) -> None:
        (self.folder / f"{name}.yml").write_text(_CONFIGURATION.format(name=name, settings=settings, **kind))

    def run(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """One command; returns what it wrote to stdout."""
        ended = self.try_it(*arguments, **environment)
        assert ended == code, (arguments, ended, self.last_said())
        return self.said[-2][1].decode()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """One command that goes on."""
        return subprocess.Popen(
            [*PROGRAM, "-v", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def end(self, process: subprocess.Popen[bytes]) -> bytes:
        """Wait for it; returns what it wrote to stderr."""
        stdout, stderr = process.communicate(timeout=60)
        self.keep(f"{process.args!r}", stdout, stderr)
        return stderr

    def keep(self, command: str, stdout: bytes, stderr: bytes) -> None:
        """What a command said, for the search."""
        self.said += [(f"stdout of {command[:80]}", stdout), (f"stderr of {command[:80]}", stderr)]

    def try_it(self, *command: str, **environment: str) -> int:
        """One command whose end may be this or that; returns its exit code."""
        done = warm_program().run(
            ("-v", *command), cwd=self.folder, env={**self.environment, **environment}, timeout=90
        )
        self.keep(" ".join(command), done.stdout.encode(), done.stderr.encode())
        return done.returncode

    def plan(self, configuration: str) -> dict[str, Any]:
        """A plan: its run, its checksum, its counts."""
        planned: dict[str, Any] = json.loads(
            self.run("plan", "--config-file", f"{configuration}.yml", "--output", "json")
        )
        return planned

    def apply(self, planned: dict[str, Any], *options: str, code: int = 0) -> None:
        """Apply a plan."""
        self.run("apply", planned["run"], "--expected-checksum", planned["plan_checksum"], *options, code=code)

    def last_said(self) -> str:
        """What the last command wrote to stderr."""
        return self.said[-1][1].decode()

    def left(self) -> Iterator[tuple[str, bytes]]:
        """All that was said, and every file of the folder but those that the operator planted."""
        yield from self.said
        planted = {"data", "token", "own-token.yml", "with-file.toml"}
        for entry in sorted(self.folder.iterdir()):
            if entry.name not in planted and entry.is_file():
                yield f"file {entry.name}", entry.read_bytes()
