"""The program in a process that has little: memory, open files, room for files, or nowhere to say anything.

The process is forked from one in which everything is imported, so a call costs milliseconds instead of seconds, and a
limit of memory speaks of what the command itself takes.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

# imported here for whoever forks from a process that has this module
from consumers import worker, writer  # noqa: F401
from consumers.infrahub import connection as infrahub_connection  # noqa: F401
from ledger import audit  # noqa: F401
from ledger.cli import main
from ledger.plan import review  # noqa: F401
from ledger.store import embedded, projections  # noqa: F401
from producers import planning  # noqa: F401
from tests.support.command_line import TOKEN, CommandLine
from tests.support.processes import RealProcess


@dataclass(frozen=True)
class Limits:
    """What the process may have. ``memory`` is in bytes beyond what it has when the command begins."""

    memory: int | None = None
    open_files: int | None = None
    file_size: int | None = None


@dataclass(frozen=True)
class Call:
    """One call of the program."""

    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    limits: Limits = field(default_factory=Limits)
    stdout: str | None = None
    stderr: str | None = None


@dataclass(frozen=True)
class Ended:
    """How a call ended."""

    code: int
    stdout: str
    stderr: str


def run(call: Call, connection: Connection) -> None:
    """The process."""
    os.chdir(call.folder)
    os.environ.clear()
    os.environ.update(call.environment)
    for descriptor, path in ((1, call.stdout or "stdout"), (2, call.stderr or "stderr")):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    sys.argv = ["apply-ledger", *call.arguments]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _limit(call.limits)
    main.run()


def _limit(limits: Limits) -> None:
    if limits.memory is not None:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if limits.open_files is not None:
        most = len(os.listdir("/proc/self/fd")) - 1 + limits.open_files
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if limits.file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size, limits.file_size))


async def call(
    cli: CommandLine,
    *arguments: str,
    limits: Limits | None = None,
    stdout: str | None = None,
    stderr: str | None = None,
    **environment: str,
) -> Ended:
    """Call the program in the folder of ``cli`` and wait for its end; no traceback, and no token, whatever happens."""
    process = RealProcess(
        run,
        Call(
            arguments,
            str(cli.folder),
            {**cli.environment, **environment},
            limits=limits or Limits(),
            stdout=stdout,
            stderr=stderr,
        ),
    )
    code, _ = await process.ended()
    process.clean_up()
    said = (
        (cli.folder / "stdout").read_text(encoding="utf-8") if stdout is None else "",
        (cli.folder / "stderr").read_text(encoding="utf-8") if stderr is None else "",
    )
    assert code is not None
    assert "Traceback" not in said[1], said[1]
    assert TOKEN not in "".join(said)
    return Ended(code, *said)


async def plan(cli: CommandLine) -> dict[str, Any]:
    """Plan with nothing in the way."""
    done = await call(cli, "plan", "--config-file", "config.yml", "--output", "json")
    assert done.code == 0, done.stderr
    planned: dict[str, Any] = json.loads(done.stdout)
    return planned
