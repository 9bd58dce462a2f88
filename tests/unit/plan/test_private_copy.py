"""Large files are copied once into a file without a name; everything is read from there, and not from the path."""

from __future__ import annotations

import errno
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.exit_codes import ExitCode
from ledger.plan import private_copy
from ledger.plan.errors import PlanArtifactUnreadableError, PlanCopyFailedError
from ledger.plan.layout import COVERAGE_FILE, MANIFEST_FILE, OPERATIONS_FILE
from ledger.plan.private_copy import MAX_COPIED_BYTES, PrivateCopy, copy_folder
from ledger.plan.private_copy import private_copy as copy_of
from ledger.plan.reader import load_plan_artifact, parse_artifact, read_raw_artifact
from ledger.plan.verify import verify_plan
from tests.support.plans import CONFIG_VERSION, RUN_ID, manifest_document, raw_run, tags, write_plan


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every file counts as large, and is copied into a folder that can be looked into."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(private_copy, "HELD_IN_MEMORY", 0)
    monkeypatch.setattr(private_copy, "_CHUNK", 64)
    return folder


def _descriptors() -> set[tuple[int, int]]:
    """The files that this process holds open."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:  # the descriptor with which the folder was listed
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
            found.add((status.st_dev, status.st_ino))
    return found


def _nameless(before: set[tuple[int, int]]) -> Iterator[os.stat_result]:
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) in _descriptors() - before:
            yield status


@pytest.mark.rules("G1", "P102", "A84")
def test_g01_what_happens_to_large_files_after_the_read_changes_nothing(tmp_path: Path) -> None:
    run_dir, _ = write_plan(tmp_path, tags(*map(str, range(300))))
    expected = (run_dir / OPERATIONS_FILE).read_bytes()
    raw = read_raw_artifact(run_dir)
    assert not raw.operations.in_memory

    # In place, so that a descriptor of the original would show it.
    with (run_dir / OPERATIONS_FILE).open("r+b") as file:
        file.write(b"x" * 100)
        file.truncate(1000)
    assert verify_plan(artifact=raw, run_id=RUN_ID, config_version=CONFIG_VERSION) == []
    (run_dir / OPERATIONS_FILE).unlink()
    artifact = parse_artifact(raw)

    assert b"".join(artifact.lines) == expected == raw.operations_bytes
    assert b"".join(operation.line() for operation in artifact.operations) == expected
    assert artifact.operations[299].line() == artifact.lines[-1]
    assert [one.operation_id for one in artifact.operations[7:9]] == [
        artifact.operations[7].operation_id,
        artifact.operations[8].operation_id,
    ]


@pytest.mark.rules("G1")
def test_g01_a_copy_has_no_name_belongs_to_its_owner_alone_and_ends_with_it(tmp_path: Path, folder: Path) -> None:
    before = _descriptors()
    (tmp_path / "file").write_bytes(b"a\nb\n")

    copy = copy_of(tmp_path / "file")
    assert copy is not None
    (status,) = _nameless(before)
    assert (stat.S_IMODE(status.st_mode), status.st_nlink, status.st_size) == (0o600, 0, 4)
    assert os.listdir(folder) == []
    assert copy.read() == b"a\nb\n"

    del copy
    assert _descriptors() == before


def test_a_small_file_needs_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_copy, "HELD_IN_MEMORY", 10)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "nowhere"))
    (tmp_path / "file").write_bytes(b"0123456789")

    copy = copy_of(tmp_path / "file")
    assert copy is not None
    assert copy.in_memory
    (tmp_path / "file").write_bytes(b"0123456789+")
    with pytest.raises(PlanCopyFailedError, match="nowhere"):
        copy_of(tmp_path / "file")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_g11_a_full_disk_is_told_with_the_folder_that_has_no_room(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    run_dir, _ = write_plan(tmp_path, tags("a", "b"))
    before = _descriptors()
    wrote = os.write

    def full(descriptor: int, data: memoryview) -> int:
        if len(data) < 64:  # the first pieces still find room
            raise OSError(code, os.strerror(code))
        return wrote(descriptor, data[:10])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(PlanCopyFailedError) as caught:
        read_raw_artifact(run_dir)
    monkeypatch.undo()
    assert str(folder) in caught.value.checked
    assert "TMPDIR" in caught.value.next_action
    assert caught.value.found == os.strerror(code)
    assert caught.value.exit_code is ExitCode.ERROR  # it says nothing about the plan, so its order stays open
    del caught
    assert _descriptors() == before
    assert os.listdir(folder) == []


def test_a_file_beyond_any_plan_is_refused_by_its_size_before_it_is_copied(tmp_path: Path) -> None:
    run_dir = raw_run(tmp_path, b"")
    for file in (OPERATIONS_FILE, COVERAGE_FILE):
        with (run_dir / file).open("wb") as opened:
            opened.truncate(MAX_COPIED_BYTES + 1)
        with pytest.raises(PlanArtifactUnreadableError, match="more than"):
            read_raw_artifact(run_dir)
        (run_dir / file).write_bytes(b"")


def test_a_file_that_grows_beyond_any_plan_while_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 200)
    with (tmp_path / "file").open("rb") as file, pytest.raises(PlanArtifactUnreadableError, match="more than 100"):
        PrivateCopy.read_from(file, path=tmp_path / "file", at_most=100)


def test_the_folder_is_the_one_that_is_named_and_never_memory_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/named")
    assert copy_folder() == Path("/named")
    monkeypatch.delenv("TMPDIR")
    assert copy_folder() == Path("/var/tmp")


@given(
    content=st.lists(st.sampled_from([b"\n", b"\r\n", b"a", b"\xe2\x80\xa8", b"x" * 70]), max_size=30).map(b"".join),
    start=st.integers(0, 100),
    size=st.integers(0, 100),
)
def test_a_copy_on_disk_reads_like_one_in_memory(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, start: int, size: int
) -> None:
    path = tmp_path_factory.mktemp("copy") / "file"
    path.write_bytes(content)
    on_disk, in_memory = copy_of(path), PrivateCopy(content)

    assert on_disk is not None
    assert on_disk.in_memory == (content == b"")
    for copy in (on_disk, in_memory):
        assert (len(copy), copy.read()) == (len(content), content)
        assert copy.read(start, size) == content[start : start + size]
        assert b"".join(copy.chunks()) == content
        assert copy.line_count == len(content.split(b"\n")) - (not content or content.endswith(b"\n"))
        assert list(copy.lines()) == [line + b"\n" for line in content.split(b"\n")[:-1]] + (
            [content.rsplit(b"\n", 1)[-1]] if content and not content.endswith(b"\n") else []
        )
        with copy.open_at(min(start, len(content))) as reader:
            assert reader.read() == content[start:]
    assert on_disk.digest(b"before") == in_memory.digest(b"before")


def test_memory_does_not_grow_with_the_operations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen bytes for each operation stay; a model of one takes a kilobyte and more."""
    monkeypatch.undo()
    monkeypatch.setattr(private_copy, "HELD_IN_MEMORY", 0)
    monkeypatch.setattr(private_copy, "_CHUNK", 4096)  # what is read at once is no longer the whole of a small file
    peaks = []
    for count in (500, 4500):
        made = sorted(tags(*map(str, range(count))), key=lambda operation: operation.operation_id)
        data = b"".join(operation.line() for operation in made)
        run_dir = raw_run(tmp_path / str(count), data, manifest_document(data))
        load_plan_artifact(run_dir)
        tracemalloc.start()
        artifact = load_plan_artifact(run_dir)
        assert sum(1 for _ in artifact.operations) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert (run_dir / MANIFEST_FILE).exists()
    assert peaks[1] - peaks[0] < 4000 * 100
