"""The suite's own servers: private, of the versions that they claim, one database per test."""

from __future__ import annotations

import asyncpg
import pytest

from tests.support.postgres import PostgresServer

pytestmark = pytest.mark.integration


async def test_each_version_is_the_one_it_claims(postgres_server: PostgresServer, empty_admin_dsn: str) -> None:
    connection = await asyncpg.connect(empty_admin_dsn)
    try:
        assert connection.get_server_version().major == int(postgres_server.version)
        assert await connection.fetchval("show listen_addresses") == ""
        assert await connection.fetchval("show data_checksums") == "on"
        assert await connection.fetchval("show server_encoding") == "UTF8"
        assert await connection.fetchval("select 'B' < 'a'"), "text sorts by code point"
    finally:
        await connection.close()


async def test_a_wrong_password_is_refused(postgres_server: PostgresServer, empty_admin_dsn: str) -> None:
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(empty_admin_dsn.replace("test-only", "guess"))


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_has_a_database_of_its_own(turn: int, postgres18_empty_admin_dsn: str) -> None:
    connection = await asyncpg.connect(postgres18_empty_admin_dsn)
    try:
        await connection.execute("create table only_here (n int)")
    finally:
        await connection.close()
