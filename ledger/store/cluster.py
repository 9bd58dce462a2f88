"""One PostgreSQL cluster on this machine: create, start, check, stop.

Knows nothing of the ledger; :mod:`ledger.store.embedded` adds ownership, passwords and migrations.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from ledger.store.binaries import PostgresBinaries
from ledger.store.embedded_errors import ServerStartError, ServerStopError, UnsafeSocketFolderError
from ledger.store.process_table import process_runs_in, processes_in
from ledger.store.system_account import ServerAccount

SUPERUSER = "postgres"
PORT = 5432
LONGEST_SOCKET_FOLDER = 88
"""Bytes. A socket's path ends after 103 bytes on macOS (107 on Linux) and ``/.s.PGSQL.5432`` takes 14 of them."""

_INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Variables that the server's programs inherit from their caller."""

_MAXIMUM_LOG_BYTES = 8 * 1024 * 1024
_CONFIGURATION = "apply-ledger.conf"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster's place.

    Attributes:
        binaries: programs of the major version that made, or will make, ``data``.
        account: the account that owns ``data`` and runs the server.
        data: the cluster's folder, ``PGDATA``.
        sockets: folder of the one socket; nothing listens on the network.
        log: the server's log file.
        settings: further server settings, name to value.
    """

    binaries: PostgresBinaries
    account: ServerAccount
    data: Path
    sockets: Path
    log: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def dsn(self, database: str, *, user: str, password: str | None) -> str:
        """A connection URI for asyncpg and libpq. It holds the password, where one is given: never log it."""
        query = urlencode({"host": str(self.sockets), "port": PORT})
        login = quote(user, safe="") if password is None else f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{login}@/{quote(database, safe='')}?{query}"

    def initialise(self, password: str) -> None:
        """Make the cluster, whole or not at all: scram for everybody, checksums, UTF-8, code point order.

        Args:
            password: of the superuser.

        Raises:
            ServerStartError: ``initdb`` failed.
        """
        beside = Path(tempfile.mkdtemp(prefix=".initdb-", dir=self.data.parent))
        self.account.take(beside, mode=0o700)
        secret = beside / "password"
        target = beside / "data"
        self.account.write_private(secret, password + "\n")
        locale = ["--locale=C", "--encoding=UTF8"]
        if self.binaries.major >= 17:
            locale += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        try:
            answer = self._run(
                "initdb",
                ["-D", str(target), "-U", SUPERUSER, "--auth=scram-sha-256", f"--pwfile={secret}", "--data-checksums"]
                + ([] if self.settings.get("fsync") != "off" else ["--no-sync"])
                + locale,
                timeout=120,
            )
            if answer.returncode != 0:
                raise ServerStartError(
                    checked=f"initdb of PostgreSQL {self.binaries.version} in {self.data.parent}",
                    expected="a new cluster",
                    found=answer.stdout.strip()[-2000:] or f"exit status {answer.returncode}",
                    next_action="read the message above; free space and permissions are the usual causes",
                )
            with (target / "postgresql.conf").open("a", encoding="utf-8") as configuration:
                configuration.write(f"\ninclude_if_exists = '{_CONFIGURATION}'\n")
            target.rename(self.data)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def start(self, *, timeout: float = 60.0) -> None:
        """Start the server in a session of its own and wait until it accepts connections.

        Args:
            timeout: seconds.

        Raises:
            ServerStartError: it did not; the end of its log is reported.
            UnsafeSocketFolderError: the socket's folder is not ours alone.
        """
        self._clear_stale_pid(timeout)
        prepare_socket_folder(self.sockets, self.account)
        self._write_configuration()
        self._rotate_log()
        # pg_ctl puts the server into its own session and leaves: the server outlives its caller.
        answer = self._run(
            "pg_ctl",
            ["start", "-w", "-s", "-D", str(self.data), "-l", str(self.log), "-t", str(int(timeout))],
            timeout=timeout + 10,
        )
        if answer.returncode != 0 or not self.pid():
            raise ServerStartError(
                checked=f"the start of PostgreSQL {self.binaries.version} on {self.data}",
                expected=f"a server that accepts connections within {timeout:g} s",
                found=self._end_of_log() or answer.stdout.strip()[-2000:] or f"exit status {answer.returncode}",
                next_action=f"read {self.log}",
            )

    def stop(self, *, mode: str = "fast", timeout: float = 60.0) -> bool:
        """Stop the server.

        Args:
            mode: ``fast`` ends sessions and writes a checkpoint, ``immediate`` does not write one.
            timeout: seconds.

        Returns:
            Whether there was a server to stop.

        Raises:
            ServerStopError: it still runs.
        """
        if self.pid() is None:
            return False
        answer = self._run(
            "pg_ctl",
            ["stop", "-w", "-s", "-D", str(self.data), "-m", mode, "-t", str(int(timeout))],
            timeout=timeout + 10,
        )
        if self.pid() is not None:
            raise ServerStopError(
                checked=f"the stop of the PostgreSQL server on {self.data}",
                expected=f"no server after {timeout:g} s",
                found=answer.stdout.strip()[-2000:] or "a server that still runs",
                next_action=f"end the sessions that use it, or read {self.log}",
            )
        return True

    def pid(self) -> int | None:
        """The process id of the server of this cluster, or nothing.

        A number in ``postmaster.pid`` alone proves nothing: after a crash it may be another process's by now.
        """
        try:
            pid = int((self.data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0])
        except (FileNotFoundError, ValueError):
            return None
        return pid if process_runs_in(abs(pid), self.data) else None

    def accepts_connections(self) -> bool:
        """Whether the running server says that it is ready."""
        try:
            lines = (self.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return False
        return self.pid() is not None and len(lines) >= 8 and lines[7].strip() == "ready"

    def wait_until_ready(self, *, timeout: float = 60.0) -> bool:
        """Wait for a server that is starting, or recovering from a crash; false when it ended or took too long."""
        waiting = Retrying(
            stop=stop_after_delay(timeout),
            wait=wait_fixed(0.05),
            retry=retry_if_result(lambda ready: not ready),
            retry_error_callback=lambda _: False,
        )
        waiting(lambda: self.accepts_connections() or self.pid() is None)
        return self.accepts_connections()

    def _clear_stale_pid(self, timeout: float) -> None:
        """Remove the lock files of a dead server.

        PostgreSQL would refuse to start while a process of that number exists: a stranger that got the number since,
        or the dead server itself, unreaped in a container without an init process. Removing the files takes away its
        own guard against left-over backends, so these are waited for first.
        """
        lock = self.data / "postmaster.pid"
        if not lock.exists() or self.pid() is not None:
            return
        waiting = Retrying(
            stop=stop_after_delay(timeout),
            wait=wait_fixed(0.1),
            retry=retry_if_result(bool),
            retry_error_callback=lambda _: None,
        )
        waiting(lambda: processes_in(self.data))
        if left := processes_in(self.data):
            raise ServerStartError(
                checked=f"left-over processes of a crashed server on {self.data}",
                expected="none",
                found=", ".join(map(str, left)),
                next_action="wait for them to end, or end them, then start again",
            )
        for stale in (lock, self.sockets / f".s.PGSQL.{PORT}", self.sockets / f".s.PGSQL.{PORT}.lock"):
            stale.unlink(missing_ok=True)

    def _write_configuration(self) -> None:
        settings = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": str(self.sockets),
            "unix_socket_permissions": "0700",
            "password_encryption": "scram-sha-256",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "log_line_prefix": "%m [%p] %u@%d ",
            # A failed statement's text could hold a password (ALTER ROLE); it is never logged.
            "log_min_error_statement": "panic",
            "max_connections": "60",
            "shared_buffers": "64MB",
            **self.settings,
        }
        lines = [f"{name} = '{value.replace(chr(39), chr(39) * 2)}'\n" for name, value in settings.items()]
        self.account.write_private(self.data / _CONFIGURATION, "".join(lines))

    def _rotate_log(self) -> None:
        if self.log.exists() and self.log.stat().st_size > _MAXIMUM_LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        self.log.touch(mode=0o600)
        self.account.take(self.log, mode=0o600)

    def _end_of_log(self) -> str:
        try:
            return self.log.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
        except OSError:
            return ""

    def _run(self, program: str, arguments: list[str], *, timeout: float) -> subprocess.CompletedProcess[str]:
        # The server outlives its caller, for years perhaps, and as another account: of the caller's variables it gets
        # none but those that programs need to run. Others would redirect it (PG*), or are secrets (G12).
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            # A file, not a pipe: the server inherits the descriptor and would keep a pipe open for ever.
            answer = subprocess.run(
                [self.binaries.program(program), *arguments],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.data.parent,
                env={**environment, "LC_ALL": "C"},
                timeout=timeout,
                umask=0o077,
                **self.account.process_options(),
            )
            output.seek(0)
            return subprocess.CompletedProcess(answer.args, answer.returncode, output.read(), "")


def socket_folder(beside: Path, account: ServerAccount) -> Path:
    """The folder for the socket: beside the data where the path is short enough, else one of ours under ``/tmp``."""
    wanted = beside / "socket"
    if len(os.fsencode(wanted)) <= LONGEST_SOCKET_FOLDER:
        return wanted
    digest = hashlib.sha256(os.fsencode(beside.resolve())).hexdigest()[:16]
    return Path(f"/tmp/apply-ledger-{account.uid}-{digest}")  # noqa: S108 - prepare_socket_folder checks its owner


def prepare_socket_folder(folder: Path, account: ServerAccount) -> None:
    """Make the folder, for ``account`` alone.

    Raises:
        UnsafeSocketFolderError: another user made it, or other users can enter it.
    """
    try:
        folder.mkdir(mode=0o700)
        account.take(folder, mode=0o700)
    except FileExistsError:
        pass
    status = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or status.st_uid != account.uid or status.st_mode & 0o077:
        raise UnsafeSocketFolderError(
            checked=f"the folder of the database's socket, {folder}",
            expected=f"a folder of the account {account.name!r} with mode 0700",
            found=f"owner {status.st_uid}, mode {status.st_mode & 0o7777:04o}",
            next_action="remove that folder, or choose a shorter data folder",
        )
