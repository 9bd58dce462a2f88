"""python -m tests.live.server COMMAND HOME: install, start, kill and stop a real Infrahub server on loopback.

install HOME            bring jars and packages into HOME, or find them there
start HOME              start on an empty database; prints the address as JSON
stop HOME               end it, and say how much memory it took
kill-api, start-api     SIGKILL to the API alone; start it again on the same database
kill-db, start-db       the same for the database
run HOME -- COMMAND     install, start (or take the server that runs there), run COMMAND, stop; COMMAND finds the server
                        in APPLY_LEDGER_TEST_INFRAHUB_ADDRESS, _TOKEN and _HOME
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from tests.live.server.errors import LiveServerError
from tests.live.server.installation import install
from tests.live.server.server import START_LIMIT, InfrahubServer

INSTALL_LIMIT = 600.0
"""Seconds that somebody else's installation and start in the same folder are waited for."""


def main() -> int:
    """Carry out one command; 1 where the server is not there afterwards, and why on stderr."""
    options = _options()
    home: Path = options.home.resolve()  # Maven would take a relative one from its own place
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if options.action == "run":
            return _run(home, tuple(options.schema), options.limit, options.command)
        with _alone(home):
            _ACTIONS[options.action](home, tuple(options.schema), options.limit)
    except LiveServerError as exc:
        sys.stderr.write(f"live server: {exc}\n")
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.live.server", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=[*_ACTIONS, "run"])
    parser.add_argument("home", type=Path, help="a folder for everything that is installed and stored")
    parser.add_argument(
        "--schema", action="append", default=[], type=Path, help="a schema file to load after the start"
    )
    parser.add_argument("--limit", type=float, default=START_LIMIT, help="seconds that a start may take")
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return parser.parse_args(arguments[:end], argparse.Namespace(command=arguments[end + 1 :]))


def _alone(home: Path) -> FileLock:
    """One command at a time works on a folder; a start in the background is waited for.

    Raises:
        LiveServerError: (on entering) the other one did not end in time.
    """
    home.mkdir(parents=True, exist_ok=True)
    return _NamedLock(f"{home}.lock", timeout=INSTALL_LIMIT)


class _NamedLock(FileLock):
    """Says in our words that it is taken."""

    def __enter__(self) -> _NamedLock:
        try:
            super().__enter__()
        except Timeout as exc:
            raise LiveServerError(f"another command has held {self.lock_file} for {INSTALL_LIMIT:g} s") from exc
        return self


def _install(home: Path, _schemas: tuple[Path, ...], _limit: float) -> None:
    began = time.monotonic()
    install(home)
    sys.stderr.write(f"live server: installed after {time.monotonic() - began:.0f} s\n")


def _start(home: Path, schemas: tuple[Path, ...], limit: float) -> None:
    _install(home, schemas, limit)
    server = InfrahubServer(home)
    if server.is_complete:
        sys.stderr.write(f"live server: taking the one that runs at {server.url}\n")
    else:
        server.stop()  # what is left of a start or a test that was cut off
        server.start(schemas, limit=limit)
    sys.stdout.write(json.dumps({"url": server.url, "token": server.token, "seconds": server.seconds}) + "\n")


def _stop(home: Path, _schemas: tuple[Path, ...], _limit: float) -> None:
    server = InfrahubServer(home)
    if not server.is_running:
        return
    memory = server.peak_memory()
    server.stop()
    parts = ", ".join(f"{name} {megabytes} MB" for name, megabytes in memory.items())
    sys.stderr.write(f"live server: stopped; peak memory {sum(memory.values())} MB ({parts})\n")


def _run(home: Path, schemas: tuple[Path, ...], limit: float, command: list[str]) -> int:
    try:
        with _alone(home):
            _start(home, schemas, limit)
        server = InfrahubServer(home)
        found = {"ADDRESS": server.url, "TOKEN": server.token, "HOME": str(home)}
        variables = {f"APPLY_LEDGER_TEST_INFRAHUB_{name}": value for name, value in found.items()}
        return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode
    finally:
        with _alone(home):
            _stop(home, schemas, limit)


_ACTIONS: dict[str, Callable[[Path, tuple[Path, ...], float], None]] = {
    "install": _install,
    "start": _start,
    "stop": _stop,
    "kill-api": lambda home, _schemas, _limit: InfrahubServer(home).kill_api(),
    "start-api": lambda home, _schemas, limit: InfrahubServer(home).start_api(limit=limit),
    "kill-db": lambda home, _schemas, _limit: InfrahubServer(home).kill_database(),
    "start-db": lambda home, _schemas, limit: InfrahubServer(home).start_database(limit=limit),
}

if __name__ == "__main__":
    sys.exit(main())
