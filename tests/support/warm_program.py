"""The program in processes that need not import it again: each is forked from one that has done so.

A command of the program spends most of its time on imports, and the tests call some hundred commands. Here one process
imports the program and forks for each call: a process of its own with its own folder, environment, streams and exit
code. What this does not show is how the program starts: tests of that, and of processes that are killed, start a real
one.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NoReturn

_PACKAGES = ("ledger", "producers", "consumers")
# imported by the libraries themselves, at the first value that is converted or the first request
_FIRST_USE = ("pandas", "asyncpg", "httpx", "anyio._backends._asyncio")


class WarmProgram:
    """Calls of ``apply-ledger``; ``close`` ends the process that they are forked from."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="warm-")
        self._address = f"{self._folder.name}/calls"
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__, self._address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        if not self._pipe(self._server.stdout).read(1):
            raise RuntimeError("the program cannot be imported")

    @staticmethod
    def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
        if stream is None:
            raise RuntimeError("a stream that was asked for is missing")
        return stream

    def close(self) -> None:
        """End it: it looks at its standard input."""
        self._pipe(self._server.stdin).close()
        self._server.wait()
        self._pipe(self._server.stdout).close()
        self._folder.cleanup()

    def run(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """One call to its end, as ``subprocess.run`` with captured text would have it.

        Raises:
            subprocess.TimeoutExpired: it did not end within ``timeout`` seconds, and was killed.
        """
        if _of_interpreter(env) != _of_interpreter(os.environ):
            command = [sys.executable, "-m", "ledger.cli.main", *arguments]
            quiet = subprocess.DEVNULL
            return subprocess.run(
                command, cwd=cwd, env=env, stdin=quiet, capture_output=True, text=True, check=False, timeout=timeout
            )
        call = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}).encode()
        with (
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
        ):
            connection.connect(self._address)
            descriptors = array.array("i", [out.fileno(), err.fileno()])
            connection.sendmsg([len(call).to_bytes(4)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
            connection.sendall(call)
            answers = connection.makefile("r", encoding="ascii")
            pid = int(answers.readline())
            connection.settimeout(timeout)
            try:
                code = int(answers.readline())
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(list(arguments), timeout) from None
            return subprocess.CompletedProcess(list(arguments), code, _text(out), _text(err))


def _of_interpreter(env: Mapping[str, str]) -> dict[str, str]:
    """What Python reads when it starts, so that a process that is forked has it from before."""
    return {name: value for name, value in env.items() if name.startswith(("PYTHON", "LC_", "LANG"))}


@functools.cache
def warm_program() -> WarmProgram:
    """The one of this process, for as long as it lives."""
    program = WarmProgram()
    atexit.register(program.close)
    return program


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8")


def _import_everything() -> None:
    for package in _PACKAGES:
        root = importlib.import_module(package)
        for module in pkgutil.walk_packages(root.__path__, f"{package}."):
            importlib.import_module(module.name)
    for name in _FIRST_USE:
        importlib.import_module(name)


def _serve(address: str) -> None:
    """Fork for each call until the standard input ends; in a child this returns, and the child runs the program."""
    _import_everything()
    gc.freeze()  # what was imported is not looked through, and so not copied, in each child
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # who waits for a call is its monitor, for which nobody waits
    os.write(1, b"+")
    while _is_called(listener):
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _take_call(connection)
            return
        connection.close()
    os._exit(0)


def _is_called(listener: socket.socket) -> bool:
    """Wait: true for a call, false where the tests are over."""
    ready, _, _ = select.select([listener, 0], [], [])
    return 0 not in ready


def _take_call(connection: socket.socket) -> None:
    """In a monitor: fork the program, which returns from here; tell its process id, and its exit code at its end."""
    size, descriptors, _, _ = socket.recv_fds(connection, 4, 2)
    call = json.loads(connection.makefile("rb").read(int.from_bytes(size)))
    child = os.fork()
    if child:
        _tell_end(connection, child)
    connection.close()
    _become(call, descriptors)


def _tell_end(connection: socket.socket, child: int) -> NoReturn:
    with contextlib.suppress(BrokenPipeError):  # who asked has lost patience
        connection.sendall(f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


def _become(call: dict[str, object], descriptors: Sequence[int]) -> None:
    """Put on what the caller gave: streams, folder, environment, arguments."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, *descriptors)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    arguments, cwd, env = call["arguments"], call["cwd"], call["env"]
    if not (isinstance(arguments, list) and isinstance(cwd, str) and isinstance(env, dict)):
        raise TypeError("this is not a call")
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    sys.path[0] = cwd
    sys.argv = ["apply-ledger", *arguments]


if __name__ == "__main__":
    _serve(sys.argv[1])
    program = importlib.import_module("ledger.cli.main")
    sys.argv[0] = str(program.__file__)
    sys.modules["__main__"] = program  # usage lines name the program
    program.run()
