"""What a person at a page has in front of them: `serve` and `work` as processes, a sandbox, an embedded database."""

from __future__ import annotations

import asyncio
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from consumers.infrahub.sandbox.server import RunningSandbox
from ledger.store.embedded import EmbeddedPostgres
from tests.support.command_line import PROGRAM, TOKEN, CommandLine
from tests.support.store import until

START_WITHIN = 180.0
"""Seconds for a process to say that it serves; the first one makes its database."""
_PATIENT = {"APPLY_LEDGER_WRITER__REQUEST_TIMEOUT": "60", "APPLY_LEDGER_WRITER__LEASE_TTL": "120"}
"""A test holds an answer until it has looked at the page, however long a browser takes for it."""
SCHEMA = Path(__file__).resolve().parents[1] / "data" / "schema-api.json"


@dataclass
class LiveSite:
    """A folder with a source, and the program as a service over it."""

    cli: CommandLine
    origin: str

    async def token(self, name: str, role: str) -> str:
        """A new token."""
        done = await asyncio.to_thread(self.cli.run, "token", "create", name, "--role", role)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    async def stop_database(self) -> None:
        """End the database under the feet of all who use it."""
        await EmbeddedPostgres(self.cli.data_dir).stop()

    async def start_database(self) -> None:
        """And begin it again."""
        await EmbeddedPostgres(self.cli.data_dir).ensure_running()

    @asynccontextmanager
    async def writer(self) -> AsyncIterator[None]:
        """`work`, while the block runs."""
        with _running(self.cli, "work") as (process, said):
            await until(_says(process, said, "serving "), within=START_WITHIN)
            yield


@asynccontextmanager
async def live_site(folder: Path, branch: str) -> AsyncIterator[LiveSite]:
    """A sandbox and a database of their own, and `serve` on a free port."""
    # the server's own account must be able to pass through every parent, so not below root's private folders
    home = Path(tempfile.mkdtemp(prefix="apply-ledger-pages-"))
    home.chmod(0o755)
    with RunningSandbox(SCHEMA, token=TOKEN) as sandbox:
        sandbox.store.create_branch(branch)
        cli = CommandLine(folder, sandbox, branch, home / "ledger", dict(_PATIENT))
        try:
            with _running(cli, "serve", "--port", "0") as (process, said):
                await until(_says(process, said, "the ledger at "), within=START_WITHIN)
                found = re.search(r"the ledger at (http://[^/\s]+)", said.read_text())
                assert found is not None
                yield LiveSite(cli, found[1])
        finally:
            sandbox.faults.clear()
            await EmbeddedPostgres(home / "ledger").stop()
            # a server that was still starting removes files of its own meanwhile
            await asyncio.to_thread(shutil.rmtree, home, ignore_errors=True)


@contextmanager
def _running(cli: CommandLine, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A process whose words go to a file: a pipe that nobody empties would stop it. It ends well at SIGTERM."""
    said = cli.folder / f"{arguments[0]}.log"
    with said.open("wb") as log:
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            cwd=cli.folder,
            env=cli.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process, said
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(timeout=60)
    words = said.read_text()
    assert "Traceback" not in words, words
    assert TOKEN not in words
    assert code == 0, words


def _says(process: subprocess.Popen[bytes], log: Path, words: str) -> Callable[[], Awaitable[bool]]:
    """Whether a process has said these words; fails where it ended without them."""

    async def said() -> bool:
        text = log.read_text()
        assert words in text or process.poll() is None, text
        return words in text

    return said
