"""One S3-compatible server for the package; a bucket for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ledger.plan.object_store import ObjectStore
from tests.integration.cli.conftest import cli, cli_database, cli_sandbox
from tests.integration.writer.conftest import branch, real, sandbox
from tests.support.s3_server import S3Server, s3_server

__all__ = ["branch", "cli", "cli_database", "cli_sandbox", "real", "sandbox"]


@pytest.fixture(scope="package")
def s3() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


@pytest.fixture
def store(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return s3.new_store("team/runs")
