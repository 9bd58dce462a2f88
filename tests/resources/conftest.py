"""A ledger, a sandbox with a branch for each test, and the program as a person meets it."""

from __future__ import annotations

from tests.field_failures.conftest import branch, real, sandbox
from tests.integration.cli.conftest import cli, cli_database, cli_sandbox, service
from tests.unit.consumers.conftest import bench

__all__ = ["bench", "branch", "cli", "cli_database", "cli_sandbox", "real", "sandbox", "service"]
