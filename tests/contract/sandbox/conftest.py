"""A sandbox of the lab schema for each test, and one of the real schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from consumers.infrahub.sandbox import RunningSandbox
from tests.support.graphql_client import GraphQLClient
from tests.support.sandbox_schema import sandbox_schema

REAL_SCHEMA = Path(__file__).parents[2] / "data" / "schema-api.json"


@pytest.fixture
def sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(sandbox_schema(), token="lab-token", seed="lab") as running:
        yield running


@pytest.fixture
def lab(sandbox: RunningSandbox) -> Iterator[GraphQLClient]:
    with GraphQLClient(sandbox) as client:
        yield client


@pytest.fixture
def real_sandbox() -> Iterator[RunningSandbox]:
    with RunningSandbox(REAL_SCHEMA, token="real-token", seed="real") as running:
        yield running
