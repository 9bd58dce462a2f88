"""The schema is one schema: what PostgreSQL 15 has of it is what 18 has, function for function."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.store.test_migrations import CATALOGUE, catalogue
from tests.support.postgres import VERSIONS, PostgresServer, migrate_fully

pytestmark = pytest.mark.integration


def _comparable(name: str, row: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """A row without what only the newer server writes down: NOT NULL as constraints, the owner's right to MAINTAIN."""
    if name == "constraints" and str(row[2]).startswith("NOT NULL "):
        return None
    return tuple(field.replace("=arwdDxtm/", "=arwdDxt/") if isinstance(field, str) else field for field in row)


@pytest.fixture
def both_servers(_servers: Any) -> list[PostgresServer]:
    return [_servers.get(version) for version in VERSIONS]


@pytest.mark.rules("G8")
async def test_g08_the_schema_is_the_same_on_the_oldest_and_the_newest_server(
    both_servers: list[PostgresServer],
) -> None:
    found: list[dict[str, list[tuple[Any, ...]]]] = []
    for server in both_servers:
        database = server.create_database(server.template("newest", migrate_fully))
        rows = await catalogue(server.dsn(database))
        server.drop_database(database)
        found.append({name: [c for row in rows[name] if (c := _comparable(name, row)) is not None] for name in rows})
    for name in CATALOGUE:
        assert found[0][name] == found[1][name], name
        assert found[0][name], f"nothing was compared: {name}"
