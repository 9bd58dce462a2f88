"""A PostgreSQL of one's own through APPLY_LEDGER_DSN and APPLY_LEDGER_ADMIN_DSN, as the documentation says."""

from __future__ import annotations

import asyncio
import json
import uuid
from urllib.parse import urlsplit

import asyncpg
import pytest

from ledger.store.embedded import EmbeddedPostgres
from tests.support.command_line import CommandLine

pytestmark = pytest.mark.integration

PASSWORD = "canary-5d0e-database-password"


async def _new_database(admin_dsn: str) -> tuple[str, str]:
    """A new database and a login role; the DSN of the administrator in it, and that of the role."""
    name = f"own_{uuid.uuid4().hex[:12]}"
    connection = await asyncpg.connect(admin_dsn)
    try:
        await connection.execute(f'create database "{name}"')
        await connection.execute(f"create role \"{name}\" login password '{PASSWORD}'")
    finally:
        await connection.close()
    parts = urlsplit(admin_dsn)
    admin = parts._replace(path=f"/{name}").geturl()
    own = parts._replace(netloc=f"{name}:{PASSWORD}@", path=f"/{name}").geturl()
    return admin, own


async def _grant(admin_dsn: str, role: str, roles: str = "ledger_writer, ledger_projector") -> None:
    connection = await asyncpg.connect(admin_dsn)
    try:
        await connection.execute(f'grant {roles} to "{role}"')
    finally:
        await connection.close()


async def _new_login(own_dsn: str, admin_dsn: str, roles: str) -> str:
    """The DSN of another login with these roles."""
    name = f"login_{uuid.uuid4().hex[:12]}"
    connection = await asyncpg.connect(admin_dsn)
    try:
        await connection.execute(f"create role \"{name}\" login password '{PASSWORD}'")
    finally:
        await connection.close()
    await _grant(admin_dsn, name, roles)
    return urlsplit(own_dsn)._replace(netloc=f"{name}:{PASSWORD}@").geturl()


@pytest.mark.rules("G12")
def test_g12_a_server_of_ones_own_serves_every_command(cli: CommandLine) -> None:
    embedded = asyncio.run(EmbeddedPostgres(cli.data_dir).ensure_running())
    admin_dsn, own_dsn = asyncio.run(_new_database(embedded.admin))
    own = {"APPLY_LEDGER_DSN": own_dsn}
    cli.source({"name": "prod", "description": None})

    before = cli.run("runs", **own)
    assert before.returncode == 1
    assert "migrate" in before.stderr
    unmigrated = cli.run("migrate", "--status", **own, APPLY_LEDGER_ADMIN_DSN=admin_dsn)
    assert "at schema none" in unmigrated.stderr, unmigrated.stderr
    assert "missing: 0001_roles" in unmigrated.stderr
    migrated = cli.run("migrate", **own, APPLY_LEDGER_ADMIN_DSN=admin_dsn)
    assert migrated.returncode == 0, migrated.stderr
    assert "applied 0001_roles" in migrated.stderr, "--status had applied it"
    assert "up to date already" in cli.run("migrate", **own, APPLY_LEDGER_ADMIN_DSN=admin_dsn).stderr
    forgotten = cli.run("runs", **own)
    assert forgotten.returncode == 1
    assert "grant" in forgotten.stderr.lower()
    asyncio.run(_grant(admin_dsn, urlsplit(own_dsn).username or ""))

    status = cli.run("migrate", "--status", **own)
    assert (status.returncode, "exactly the schema of this program" in status.stderr) == (0, True), status.stderr

    planned = json.loads(cli.run("plan", "--config-file", "config.yml", "--output", "json", **own).stdout)
    checksum = planned["plan_checksum"]
    answers = [
        cli.run("apply", planned["run"], "--expected-checksum", checksum, "--reason", "own server", **own),
        cli.run("runs", **own),
        cli.run("runs", "show", planned["run"], **own),
        cli.run("replay", "--output", "ndjson", **own),
        cli.run("verify", **own),
        cli.run("rebuild", **own),
        cli.run("show", planned["run"], **own),
    ]
    assert [answer.returncode for answer in answers] == [0] * len(answers), [a.stderr for a in answers]
    assert PASSWORD not in "".join(a.stdout + a.stderr for a in [before, migrated, forgotten, *answers])
    assert cli.run("down", **own).returncode == 1

    # An auditor's login reads what there is, also where the projections lag, and is never told to ask for more rights.
    assert cli.run("checkpoint", "key", "new", "ours", **own).returncode == 0
    assert cli.run("checkpoint", "publish", **own).returncode == 0
    auditor = {"APPLY_LEDGER_DSN": asyncio.run(_new_login(own_dsn, admin_dsn, "ledger_reader"))}
    shown = [
        cli.run("runs", **auditor),
        cli.run("runs", "show", planned["run"], **auditor),
        cli.run("blame", "BuiltinTag", "name=prod", **auditor),
        cli.run("verify", **auditor),
    ]
    assert [answer.returncode for answer in shown] == [0] * len(shown), [answer.stderr for answer in shown]
    assert "applied" in shown[0].stdout
    assert "the last 2 events are not counted here yet" in shown[0].stderr
    assert cli.run("rebuild", **auditor).returncode == 1


@pytest.mark.rules("G12")
def test_g12_a_wrong_dsn_shows_no_password(cli: CommandLine) -> None:
    done = cli.run("runs", APPLY_LEDGER_DSN=f"postgresql://me:{PASSWORD}@127.0.0.1:1/nowhere")
    assert done.returncode in (1, 8)
    assert PASSWORD not in done.stdout + done.stderr
    malformed = cli.run("runs", APPLY_LEDGER_DSN=f"postgresql://me:{PASSWORD}@[bad/nowhere")
    assert malformed.returncode == 1
    assert PASSWORD not in malformed.stdout + malformed.stderr
