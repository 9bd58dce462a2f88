"""The sandbox in the foreground, as the command line runs it."""

from __future__ import annotations

import signal
import subprocess
import sys

import httpx
import pytest

from tests.contract.sandbox.conftest import REAL_SCHEMA

pytestmark = pytest.mark.contract

PROGRAM = """
import sys
from pathlib import Path
from consumers.infrahub.sandbox import serve
serve("127.0.0.1", 0, Path(sys.argv[1]), "token", started=lambda url: print(url, flush=True))
print("ended")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_a_signal_and_ends_without_a_traceback(number: signal.Signals) -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM, str(REAL_SCHEMA)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert httpx.get(f"{url}/api/info", trust_env=False).status_code == 200
            process.send_signal(number)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, err) == (0, "ended\n", "")
