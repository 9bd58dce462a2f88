"""Folders of processes that were killed are removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.plan import private_folder as module
from ledger.plan.private_folder import PREFIX, private_folder, remove_abandoned

_HOLDER = """
import sys
import tempfile
from pathlib import Path
from ledger.plan.private_folder import private_folder
with private_folder(Path(sys.argv[1])) as folder:
    (folder / "run").mkdir()
    (folder / "run" / "manifest.json").write_bytes(b"{}")
    print(folder, flush=True)
    sys.stdin.read()
"""


Holder = tuple[subprocess.Popen[str], Path]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[Callable[[], Holder]]:
    """Starts a process that holds a private folder with a run in it."""
    started: list[subprocess.Popen[str]] = []

    def start() -> Holder:
        process = subprocess.Popen(
            [sys.executable, "-c", _HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.rules("G1")
def test_what_a_killed_process_left_is_gone_with_the_next_folder_and_a_living_one_keeps_its_own(
    holder: Callable[[], Holder], tmp_path: Path
) -> None:
    killed, left = holder()
    living, held = holder()
    _killed(killed)
    assert (left / "run" / "manifest.json").is_file()
    with private_folder(tmp_path) as own:
        assert not left.parent.exists()
        assert (held / "run" / "manifest.json").read_bytes() == b"{}"
        assert own.stat().st_mode & 0o777 == 0o700
        assert sorted(tmp_path.iterdir()) == sorted([own.parent, held.parent])
    assert list(tmp_path.iterdir()) == [held.parent]
    assert living.poll() is None


def test_a_process_that_ends_by_itself_leaves_nothing(holder: Callable[[], Holder], tmp_path: Path) -> None:
    process, _ = holder()
    process.communicate("")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_maker_died_before_it_was_locked_is_removed_while_it_is_empty(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}empty").mkdir(mode=0o700)
    (tmp_path / f"{PREFIX}full").mkdir(mode=0o700)
    (tmp_path / f"{PREFIX}full" / "something").touch()
    remove_abandoned(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{PREFIX}full"]


@pytest.mark.rules("G12")
def test_what_is_not_provably_our_own_is_left_alone(
    holder: Callable[[], Holder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, left = holder()
    _killed(process)
    elsewhere = tmp_path / "elsewhere"
    left.parent.rename(elsewhere)
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").touch()
    open_to_others = tmp_path / f"{PREFIX}open"
    open_to_others.mkdir(mode=0o755)
    before = sorted(tmp_path.rglob("*"))
    remove_abandoned(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before

    (tmp_path / f"{PREFIX}link").unlink()
    elsewhere.rename(left.parent)
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)
        remove_abandoned(tmp_path)
        assert left.exists()
    remove_abandoned(tmp_path)
    assert not left.parent.exists()


@pytest.mark.parametrize(
    "mounts",
    [
        "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {folder} rw - nfs4 server:/share rw\n",
        "1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {folder} rw shared:1 - fuse.sshfs host:/ rw\n",
        "",
    ],
    ids=["a share", "a file system of a program", "nothing tells"],
)
def test_on_a_file_system_whose_locks_others_may_not_see_nothing_is_removed(
    holder: Callable[[], Holder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mounts: str
) -> None:
    process, left = holder()
    _killed(process)
    told = tmp_path / "mountinfo"
    told.write_text(mounts.format(folder=str(tmp_path).replace(" ", "\\040")))
    monkeypatch.setattr(module, "_MOUNTS", str(told))
    remove_abandoned(tmp_path)
    assert left.exists()


def test_a_folder_that_is_taken_for_abandoned_while_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another process looks exactly between the making of a folder and the lock on it.
    make: Callable[..., str] = tempfile.mkdtemp
    made: list[str] = []

    def made_and_looked_at(*, prefix: str, dir: Path) -> str:
        made.append(make(prefix=prefix, dir=dir))
        if len(made) == 1:
            remove_abandoned(tmp_path)
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", made_and_looked_at)
    with private_folder(tmp_path) as folder:
        assert len(made) == 2
        assert folder.parent == Path(made[1])


def test_a_folder_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"), private_folder(tmp_path / "nowhere"):
        pass
