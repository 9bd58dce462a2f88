"""The embedded server: private from its first second, one per folder, found again, stopped cleanly."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from ledger.store.embedded import Dsns, EmbeddedPostgres
from ledger.store.system_account import server_account
from tests.support.waiting import until

pytestmark = [pytest.mark.integration]

_STARTER = """
import asyncio, sys, pathlib
from ledger.store.embedded import EmbeddedPostgres
server = EmbeddedPostgres(pathlib.Path(sys.argv[1]))
dsns = asyncio.run(server.ensure_running())
print(server.status().pid, dsns.reader, flush=True)
sys.stdin.read()
"""


async def _value(dsn: str, query: str) -> object:
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


def _starter(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _STARTER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def _report(starter: subprocess.Popen[str]) -> tuple[int, str]:
    assert starter.stdout is not None
    pid, dsn = starter.stdout.readline().split()
    return int(pid), dsn


@pytest.mark.rules("G12")
async def test_g12_four_roles_connect_and_nobody_else(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    dsns = await server.ensure_running()

    assert await _value(dsns.admin, "select session_user::text") == "postgres"
    for role in ("writer", "projector", "reader"):
        assert await _value(getattr(dsns, role), "select session_user::text") == f"ledger_{role}"
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(getattr(dsns, role), password="guess")
    assert await _value(dsns.admin, "select count(*) from pg_hba_file_rules where auth_method <> 'scram-sha-256'") == 0
    assert await _value(dsns.admin, "show listen_addresses") == ""
    assert await _value(dsns.admin, "show fsync") == "on"
    assert await _value(dsns.admin, "show data_checksums") == "on"


@pytest.mark.rules("G12")
async def test_g12_passwords_stay_in_one_private_file(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    dsns = await server.ensure_running()

    secrets = [dsn.split("@")[0].rsplit(":", 1)[1] for dsn in (dsns.admin, dsns.writer, dsns.projector, dsns.reader)]
    assert len(set(secrets)) == 4
    assert not any(secret in repr(dsns) for secret in secrets)
    holders = [path for path in folder.rglob("*") if path.is_file() and _holds(path, secrets)]
    assert holders == [folder / "credentials.json"]
    assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
    for private in (folder / "data", folder / "socket"):
        assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert private.stat().st_uid == server_account().uid


@pytest.mark.rules("G12")
async def test_g12_an_auditor_reads_with_what_the_status_says_and_the_file_that_it_names(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    await server.ensure_running()
    status = server.status()
    password = json.loads(status.credentials.read_text())["reader"]
    assert status.reader is not None
    assert password not in status.reader
    connection = await asyncpg.connect(status.reader, password=password)
    try:
        assert await connection.fetchval("select session_user::text") == "ledger_reader"
        assert await connection.fetchval("select count(*) from ledger.event") == 0
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute("insert into ledger.inbox default values")
    finally:
        await connection.close()


def _holds(path: Path, secrets: list[str]) -> bool:
    content = path.read_bytes()
    return any(secret.encode() in content for secret in secrets)


async def test_the_server_survives_kill_9_of_its_starter_and_is_found_again(folder: Path) -> None:
    starter = _starter(folder)
    pid, dsn = await asyncio.to_thread(_report, starter)
    os.killpg(starter.pid, signal.SIGKILL)
    starter.communicate()

    assert await _value(dsn, "select 1") == 1
    again = EmbeddedPostgres(folder)
    assert (await again.ensure_running()).reader == dsn
    assert again.status().pid == pid


async def test_two_starters_at_once_get_one_server(folder: Path) -> None:
    starters = [_starter(folder), _starter(folder)]
    reports = await asyncio.gather(*(asyncio.to_thread(_report, starter) for starter in starters))
    for starter in starters:
        starter.communicate()

    assert reports[0] == reports[1]
    assert await _value(reports[0][1], "select 1") == 1


async def test_a_crashed_server_is_started_again_with_its_data(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    dsns = await server.ensure_running()
    await _execute(dsns, "create table kept as select 7 as n")
    pid = _require(server.status().pid)
    assert not server.status().crashed
    os.kill(pid, signal.SIGKILL)
    await until(lambda: server.status().crashed)

    assert (await server.ensure_running()) == dsns
    assert not server.status().crashed
    assert await _value(dsns.admin, "select n from kept") == 7
    assert server.status().pid != pid


async def test_a_stale_pid_that_is_a_strangers_by_now_does_not_keep_the_server_down(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    dsns = await server.ensure_running()
    lock = folder / "data" / "postmaster.pid"
    os.kill(_require(server.status().pid), signal.SIGKILL)
    stranger = subprocess.Popen(["sleep", "300"], cwd="/", **server_account().process_options())
    lines = lock.read_text(encoding="utf-8").split("\n", 1)
    lock.write_text(f"{stranger.pid}\n{lines[1]}", encoding="utf-8")

    assert server.status().pid is None
    await server.ensure_running()
    assert await _value(dsns.reader, "select 1") == 1
    assert stranger.poll() is None, "the stranger was left alone"
    stranger.kill()
    stranger.wait()


async def test_stop_is_clean_and_says_whether_there_was_a_server(folder: Path) -> None:
    server = EmbeddedPostgres(folder)
    assert await server.stop() is False
    dsns = await server.ensure_running()
    await _execute(dsns, "create table kept as select 7 as n")

    assert await server.stop() is True
    assert server.status().pid is None
    assert server.status().exists
    assert await server.stop() is False
    assert "database system is shut down" in server.status().log.read_text(encoding="utf-8")
    await server.ensure_running()
    assert await _value(dsns.admin, "select n from kept") == 7


async def test_status_starts_and_makes_nothing(folder: Path) -> None:
    status = EmbeddedPostgres(folder).status()

    assert (status.exists, status.pid, status.major, status.reader) == (False, None, None, None)
    assert not folder.exists()


async def test_the_callers_postgres_variables_redirect_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGDATA": "/nowhere", "PGPORT": "1", "PGHOST": "example.invalid", "PGUSER": "nobody"}.items():
        monkeypatch.setenv(name, value)

    dsns = await EmbeddedPostgres(folder).ensure_running()

    assert await _value(dsns.reader, "select session_user::text") == "ledger_reader"


async def test_an_interrupted_initdb_is_cleared_away(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    server = EmbeddedPostgres(folder)
    await server.ensure_running()
    await server.stop()
    (folder / ".initdb-dead" / "data").mkdir(parents=True)

    await server.ensure_running()

    assert not list(folder.glob(".initdb-*"))


async def _execute(dsns: Dsns, statement: str) -> None:
    connection = await asyncpg.connect(dsns.admin)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _require(pid: int | None) -> int:
    assert pid is not None
    return pid
