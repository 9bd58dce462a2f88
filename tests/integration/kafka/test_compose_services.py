"""What the compose file tells PostgreSQL and Kafka, told to real ones."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from ledger.store.ledger import Ledger
from tests.support.kafka_broker import CLUSTER_ID, KafkaCluster
from tests.support.postgres import PostgresServer, binaries_of
from tests.support.store import BINDING

pytestmark = [pytest.mark.integration]

COMPOSE: dict[str, Any] = yaml.safe_load(
    (Path(__file__).resolve().parents[3] / "docker-compose.yml").read_text(encoding="utf-8")
)
PASSWORD = "it's a $tr\\ange one"


@pytest.mark.rules("G12")
async def test_g12_the_role_of_the_compose_file_can_serve_the_ledger_and_its_password_needs_no_encoding(
    postgres18_server: PostgresServer, postgres18_admin_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "role.sql"
    script.write_text(COMPOSE["configs"]["role"]["content"], encoding="utf-8")
    psql = [str(binaries_of("18").folder / "psql"), "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
    for _ in range(2):  # as at each start of the services
        done = subprocess.run(
            [*psql, f"--file={script}", postgres18_admin_dsn],
            env={**os.environ, "LEDGER_PASSWORD": PASSWORD},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
    database = urlsplit(postgres18_admin_dsn)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    dsn = f"postgresql://apply_ledger@/{database.path.lstrip('/')}?{database.query}"
    async with await Ledger.open(dsn, allow_unsafe_fsync=True) as ledger:
        assert await ledger.register_binding(BINDING) == 1


@pytest.mark.broker
def test_the_broker_takes_the_settings_of_the_compose_file(kafka: KafkaCluster, tmp_path: Path) -> None:
    environment = COMPOSE["services"]["kafka"]["environment"]
    properties = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): re.sub(r"\$\{[A-Z_]+:-(\d+)\}", r"\1", str(value))
        for name, value in environment.items()
    }
    properties["log.dirs"] = str(tmp_path / "data")
    (tmp_path / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
    done = subprocess.run(
        [*kafka.brokers[0].command, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "server.properties"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "data" / "meta.properties").exists()
