"""A dump restored on another server is the same ledger: docs/backup.md, step by step."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.audit.verify import verify_binding
from ledger.store.ledger import Ledger
from ledger.store.migrate import migrate
from tests.support.postgres import ROLES, PostgresServer, migrate_fully
from tests.support.recorded_runs import BINDING, make_plan, recorder
from tests.support.store import connection_to
from tests.support.told_story import told_database

pytestmark = pytest.mark.integration


def _run(server: PostgresServer, program: str, *arguments: str) -> None:
    done = subprocess.run(
        [server.cluster.binaries.program(program), *arguments], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


@pytest.fixture
def told_dsns(postgres_server: PostgresServer) -> Iterator[dict[str, str]]:
    """A ledger that tells a story, on each version."""
    yield from told_database(postgres_server)


@pytest.mark.rules("G8")
async def test_g08_a_restored_dump_verifies_and_takes_events_again(
    postgres_server: PostgresServer, postgres18_server: PostgresServer, told_dsns: dict[str, str], tmp_path: Path
) -> None:
    dump = tmp_path / "ledger.dump"
    _run(postgres_server, "pg_dump", "--format=custom", f"--file={dump}", told_dsns["admin"])
    postgres18_server.template("newest", migrate_fully)  # the roles are the server's, not the database's
    name = postgres18_server.create_database()
    admin = postgres18_server.dsn(name)
    _run(postgres18_server, "pg_restore", "--exit-on-error", f"--dbname={admin}", str(dump))
    assert await migrate(admin) == []
    restored = {"admin": admin} | {key: postgres18_server.dsn(name, user=role) for key, role in ROLES.items()}

    async with (
        await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as before,
        await Ledger.open(restored["reader"], allow_unsafe_fsync=True) as after,
    ):
        old, new = await before.binding(BINDING), await after.binding(BINDING)
        assert old is not None
        assert new is not None
        assert (new.head_position, new.head_hash) == (old.head_position, old.head_hash)
        report = await verify_binding(after, BINDING)
        assert report.holds, report.findings
        assert await after.unguarded_tables() == []
        assert await after.missing_keys() == []
    async with connection_to(admin) as connection:
        await connection.execute("update ledger.binding set lease_expires_at = clock_timestamp()")
    async with recorder(restored) as recording:
        await recording.whole_run(make_plan("run-after-the-restore"))
        assert (await verify_binding(recording.ledger, BINDING)).holds
    postgres18_server.drop_database(name)
