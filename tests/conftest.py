"""Fixtures shared by all tiers: real PostgreSQL servers and databases, a real broker, a real Infrahub."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
import structlog

from tests.live.infrahub import LiveBranch, LiveInfrahub, given_infrahub
from tests.support.kafka_broker import KafkaCluster, broker_jars
from tests.support.postgres import ROLES, VERSIONS, PostgresServer, Version, migrate_fully


class _Servers:
    """The clusters of this session, each started when the first test asks for it."""

    def __init__(self) -> None:
        self._running: dict[Version, PostgresServer] = {}

    def get(self, version: Version) -> PostgresServer:
        if version not in self._running:
            self._running[version] = PostgresServer.start(version)
        return self._running[version]

    def stop(self) -> None:
        for server in self._running.values():
            server.stop()


@pytest.fixture(autouse=True)
def _a_log_of_its_own() -> Iterator[None]:
    """A command that runs within a test logs to that test's standard error, which is closed when the test is over."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def _servers() -> Iterator[_Servers]:
    servers = _Servers()
    yield servers
    servers.stop()


@pytest.fixture(scope="session", params=VERSIONS, ids=lambda version: f"pg{version}")
def postgres_server(request: pytest.FixtureRequest, _servers: _Servers) -> PostgresServer:
    """A cluster; tests that use it run on both ends of the supported range."""
    return _servers.get(cast("Version", request.param))


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One real broker for all tests that leave it running; each has topics and groups of its own."""
    with KafkaCluster(broker_jars(), tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="session")
def postgres18_server(_servers: _Servers) -> PostgresServer:
    """A cluster of the embedded version, for tests where the version says nothing."""
    return _servers.get("18")


@pytest.fixture
def empty_admin_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The superuser's DSN of a new, empty database on each version."""
    yield from _database(postgres_server, "template0")


@pytest.fixture
def admin_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The superuser's DSN of a new, migrated database on each version."""
    yield from _database(postgres_server, postgres_server.template("newest", migrate_fully))


@pytest.fixture
def ledger_dsns(postgres_server: PostgresServer, admin_dsn: str) -> dict[str, str]:
    """DSNs of a new, migrated database on each version: ``admin``, ``writer``, ``projector``, ``reader``."""
    return _dsns(postgres_server, admin_dsn)


@pytest.fixture
def postgres18_empty_admin_dsn(postgres18_server: PostgresServer) -> Iterator[str]:
    """The superuser's DSN of a new, empty database on the embedded version only."""
    yield from _database(postgres18_server, "template0")


@pytest.fixture
def postgres18_admin_dsn(postgres18_server: PostgresServer) -> Iterator[str]:
    """The superuser's DSN of a new, migrated database on the embedded version only."""
    yield from _database(postgres18_server, postgres18_server.template("newest", migrate_fully))


@pytest.fixture
def postgres18_ledger_dsns(postgres18_server: PostgresServer, postgres18_admin_dsn: str) -> dict[str, str]:
    """As ``ledger_dsns``, on the embedded version only."""
    return _dsns(postgres18_server, postgres18_admin_dsn)


@pytest.fixture(scope="session")
def live_infrahub() -> LiveInfrahub:
    """The real Infrahub of this session; an error where none was given."""
    return given_infrahub()


@pytest.fixture
def live_branch(live_infrahub: LiveInfrahub) -> Iterator[LiveBranch]:
    """A branch of the real Infrahub for one test, forked from main."""
    branch = live_infrahub.new_branch()
    yield branch
    branch.discard()


def _database(server: PostgresServer, template: str) -> Iterator[str]:
    name = server.create_database(template)
    yield server.dsn(name)
    server.drop_database(name)


def _dsns(server: PostgresServer, admin_dsn: str) -> dict[str, str]:
    name = server.database_of(admin_dsn)
    return {"admin": admin_dsn} | {key: server.dsn(name, user=role) for key, role in ROLES.items()}
