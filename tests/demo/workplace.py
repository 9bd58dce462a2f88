"""A place of its own for the demo: folders, a sandbox Infrahub, settings, and a way to call the program."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.text import Text

DATA = Path(__file__).resolve().parents[1] / "data"
INVENTORY, TWO_SOURCES = "inventory", "two-sources"
PROGRAM = (sys.executable, "-m", "ledger.cli.main")
CREATE_BRANCH = "mutation($name: String!) { BranchCreate(data: {name: $name}) { ok } }"
console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)


class DemoFailed(Exception):
    """A step did not do what it must; the demo ends with exit code 1."""


@dataclass(frozen=True)
class Workplace:
    """The demo's folder and environment."""

    state: Path
    url: str
    environment: dict[str, str]

    def run(self, *arguments: str, expect: int = 0, quiet: bool = False) -> Any:
        """Call the program, show the command, and return what it wrote to stdout as JSON."""
        if not quiet:
            console.print(
                Text("$ apply-ledger " + shlex.join(map(_short, arguments)), style="bold cyan"), soft_wrap=True
            )
        began = time.monotonic()
        done = self._call(*arguments, "--output", "json", stdout=subprocess.PIPE)
        if not quiet:
            console.print(f"  took {time.monotonic() - began:.1f} s", style="dim")
        if done.returncode != expect:
            raise DemoFailed(f"{shlex.join(arguments)}: exit code {done.returncode}, expected {expect}")
        return json.loads(done.stdout) if expect == 0 else None

    def show(self, *arguments: str) -> None:
        """Call the program and let a person see what it prints."""
        console.print(Text("$ apply-ledger " + shlex.join(map(_short, arguments)), style="bold cyan"), soft_wrap=True)
        done = self._call(*arguments, stdout=None)
        if done.returncode != 0:
            raise DemoFailed(f"{shlex.join(arguments)}: exit code {done.returncode}")

    def _call(self, *arguments: str, stdout: int | None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*PROGRAM, *arguments], env=self.environment, check=False, stdin=subprocess.DEVNULL, stdout=stdout
        )

    def start(self, *arguments: str, log: Path | None = None) -> subprocess.Popen[bytes]:
        """Start the program without waiting for it; what it says to people goes to the end of ``log``, or nowhere."""
        console.print(Text("$ apply-ledger " + shlex.join(map(_short, arguments)) + " &", style="bold cyan"))
        with (log or Path(os.devnull)).open("ab") as stderr:
            return subprocess.Popen(
                [*PROGRAM, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )

    @property
    def token(self) -> str:
        """The sandbox's token."""
        return self.environment["INFRAHUB_API_TOKEN"]

    def journal(self) -> list[dict[str, Any]]:
        """Every write that the sandbox has received, in order."""
        entries: list[dict[str, Any]] = httpx.get(
            f"{self.url}/sandbox/journal", headers={"X-INFRAHUB-KEY": self.token}, trust_env=False
        ).json()
        return entries


def _short(argument: str) -> str:
    """Paths below the working folder are shown relative to it, as one would type them."""
    path = Path(argument)
    return str(path.relative_to(Path.cwd())) if path.is_absolute() and path.is_relative_to(Path.cwd()) else argument


@contextmanager
def workplace(
    state: Path, *, branches: Sequence[str] = (INVENTORY, TWO_SOURCES), variables: Mapping[str, str] | None = None
) -> Iterator[Workplace]:
    """Folders emptied, a sandbox on a free port with these branches, the embedded database stopped at the end.

    ``variables`` are added to the environment of every call.
    """
    state = state.resolve()
    ledger = _ledger_folder(state)
    token = secrets.token_urlsafe(24)
    environment = {
        **{name: value for name, value in os.environ.items() if not _is_foreign(name)},
        "INFRAHUB_API_TOKEN": token,
        "APPLY_LEDGER_DATA_DIR": str(ledger),
        "INFRAHUB_SYNC_CACHE_DIR": str(state / "runs"),
        "APPLY_LEDGER_CONFIG": str(state / "apply-ledger.toml"),
        **(variables or {}),
    }
    (state / "apply-ledger.toml").write_text("", encoding="utf-8")
    _program(environment, "down", "--force")
    shutil.rmtree(ledger, ignore_errors=True)
    with _sandbox(environment) as url:
        environment["INFRAHUB_ADDRESS"] = url
        _settings(state / "apply-ledger.toml", url, branches)
        for branch in branches:
            _create_branch(url, token, branch)
        try:
            yield Workplace(state, url, environment)
        finally:
            _program(environment, "down", "--force")
            if not ledger.is_relative_to(state):
                shutil.rmtree(ledger, ignore_errors=True)


def _is_foreign(name: str) -> bool:
    return name.startswith(("INFRAHUB", "APPLY_LEDGER_")) or name.lower().endswith("_proxy")


def _ledger_folder(state: Path) -> Path:
    """Root's server runs under an account of its own, which could not pass through root's private folders."""
    if os.geteuid() != 0:
        return state / "ledger"
    return Path("/var/lib") / f"apply-ledger-demo-{hashlib.sha256(str(state).encode()).hexdigest()[:8]}"


def _program(environment: dict[str, str], *arguments: str) -> None:
    subprocess.run([*PROGRAM, *arguments], env=environment, check=True, stderr=subprocess.DEVNULL)


@contextmanager
def _sandbox(environment: dict[str, str]) -> Iterator[str]:
    schema = str(DATA / "schema-api.json")
    command = [*PROGRAM, "sandbox", "--schema", schema, "--port", "0", "--output", "ndjson"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise DemoFailed("the sandbox Infrahub did not start")
            yield json.loads(line)["url"]
        finally:
            process.terminate()


def _settings(path: Path, url: str, branches: Sequence[str]) -> None:
    declared = [f'[[destination]]\nurl = "{url}"\nbranch = "{branch}"\n' for branch in branches]
    path.write_text("\n".join(declared), encoding="utf-8")


def _create_branch(url: str, token: str, branch: str) -> None:
    """Each forks from the empty default branch, so what one of them holds is nothing to the others."""
    answer = httpx.post(
        f"{url}/graphql",
        headers={"X-INFRAHUB-KEY": token},
        json={
            "query": "mutation($name: String!) { BranchCreate(data: {name: $name}) { ok } }",
            "variables": {"name": branch},
        },
        trust_env=False,
    )
    if answer.json().get("data", {}).get("BranchCreate", {}).get("ok") is not True:
        raise DemoFailed(f"the sandbox did not make the branch {branch}")
