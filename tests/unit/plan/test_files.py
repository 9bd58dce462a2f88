"""How a file is put in place: whole or not at all, synced, and never over another one unasked."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ledger.plan import files
from ledger.plan.errors import (
    PlanAlreadyWrittenError,
    PlanWriteFailedError,
)


def test_a_file_is_synced_before_and_its_directory_after_it_is_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, rename = os.fsync, os.replace

    def noting_fsync(descriptor: int) -> None:
        steps.append("sync " + ("directory" if os.readlink(f"/proc/self/fd/{descriptor}") == str(tmp_path) else "file"))
        fsync(descriptor)

    def noting_rename(source: Any, target: Any) -> None:
        steps.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "replace", noting_rename)
    files.write_durably(tmp_path / "x", [b"a", b"b"])

    assert steps == ["sync file", "rename", "sync directory"]
    assert (tmp_path / "x").read_bytes() == b"ab"


def _broken_chunks() -> Any:
    yield b"half"
    raise KeyboardInterrupt


@pytest.mark.parametrize("replace_old", [True, False])
def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, replace_old: bool) -> None:
    if replace_old:
        (tmp_path / "x").write_bytes(b"old")

    with pytest.raises(KeyboardInterrupt):
        files.write_durably(tmp_path / "x", _broken_chunks())
    assert [path.read_bytes() for path in tmp_path.iterdir()] == ([b"old"] if replace_old else [])


def test_a_file_may_be_replaced_only_where_that_is_said(tmp_path: Path) -> None:
    files.write_durably(tmp_path / "x", b"one")
    with pytest.raises(PlanAlreadyWrittenError):
        files.write_durably(tmp_path / "x", b"two", replace=False)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"one"]
    files.write_durably(tmp_path / "x", b"three")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"three"]


@pytest.mark.parametrize("prepare", [lambda d: None, lambda d: (d / "missing").write_bytes(b"")])
def test_a_directory_that_is_not_there_is_a_named_failure(tmp_path: Path, prepare: Callable[[Path], Any]) -> None:
    prepare(tmp_path)

    with pytest.raises(PlanWriteFailedError):
        files.write_durably(tmp_path / "missing" / "x", b"")
