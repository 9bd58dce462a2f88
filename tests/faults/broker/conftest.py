"""Brokers and databases that are killed, and a ledger for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from ledger.store.ledger import Ledger
from tests.support.broker_faults import Accounts
from tests.support.kafka_broker import KafkaCluster, broker_jars


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One broker that the tests of a module kill, freeze and start again."""
    with KafkaCluster(broker_jars(), tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture(scope="module")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(broker_jars(), tmp_path_factory.mktemp("kafka"), brokers=3) as running:
        yield running


@pytest.fixture
async def accounts(postgres18_ledger_dsns: dict[str, str]) -> AsyncIterator[Accounts]:
    async with await Ledger.open(postgres18_ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        yield Accounts(ledger, postgres18_ledger_dsns["admin"])
