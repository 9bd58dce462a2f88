"""What the live tier promises without a server: no strangers are killed, and no test is skipped for lack of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.infrahub import ADDRESS, HOME, TOKEN, given_infrahub
from tests.live.server.managed import ManagedProcesses

_LASTING = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]


def test_a_process_is_found_again_by_whoever_opens_the_folder_and_is_ended(tmp_path: Path) -> None:
    ManagedProcesses(tmp_path).spawn("api", _LASTING, os.environ)
    later = ManagedProcesses(tmp_path)
    pid = later.pid("api")
    assert pid is not None
    assert later.peak_memory()["api"] >= 0
    later.end("api", signal.SIGKILL)
    assert later.pid("api") is None
    assert ManagedProcesses(tmp_path).pid("api") is None


def test_a_stranger_who_was_given_the_pid_since_is_left_alone(tmp_path: Path) -> None:
    processes = ManagedProcesses(tmp_path)
    with subprocess.Popen(_LASTING, stdout=subprocess.PIPE, start_new_session=True) as stranger:
        processes.known["processes"] = {"api": [stranger.pid, 1]}  # started in another moment than that
        assert processes.pid("api") is None
        processes.end("api", signal.SIGKILL)
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("missing", [ADDRESS, TOKEN])
def test_without_a_server_a_live_test_fails_and_says_what_to_do(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ADDRESS, TOKEN):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv(missing)
    with pytest.raises(RuntimeError, match="make live"):
        given_infrahub()


def test_only_the_tests_own_variables_name_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (ADDRESS, TOKEN, HOME):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("INFRAHUB_ADDRESS", "https://production.example")
    monkeypatch.setenv("INFRAHUB_API_TOKEN", "a-token")
    with pytest.raises(RuntimeError, match=ADDRESS):
        given_infrahub()
