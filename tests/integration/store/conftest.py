"""A migrated database on each version with a ledger, one binding, one writer and an administrator's connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from ledger.store.ledger import Ledger
from ledger.store.writer import Lease, WriterStore
from tests.support.store import BINDING, claim, connection_to, open_writer


@pytest.fixture
async def ledger(ledger_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(ledger_dsns["writer"], allow_unsafe_fsync=True) as ledger:
        yield ledger


@pytest.fixture
async def admin(ledger_dsns: dict[str, str]) -> AsyncIterator[Any]:
    async with connection_to(ledger_dsns["admin"]) as connection:
        yield connection


@pytest.fixture
async def binding_id(ledger: Ledger) -> int:
    return await ledger.register_binding(BINDING)


@pytest.fixture
async def writer(ledger_dsns: dict[str, str]) -> AsyncIterator[WriterStore]:
    async with open_writer(ledger_dsns["writer"]) as store:
        yield store


@pytest.fixture
async def lease(writer: WriterStore, binding_id: int) -> Lease:
    return await claim(writer, binding_id)
