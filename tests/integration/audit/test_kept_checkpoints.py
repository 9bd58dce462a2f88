"""Checkpoints that the service publishes by itself: when, of what, and what becomes of trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from consumers.service.checkpoints import CheckpointKeeper, CheckpointPolicy
from ledger.audit import verify_binding
from ledger.audit.errors import NoSigningKeyError
from ledger.audit.heads import trusted_checkpoint
from ledger.audit.signed_note import SigningKey
from ledger.store.ledger import Ledger
from ledger.store.records import BindingRow
from tests.support.recorded_runs import BINDING, make_commit, make_plan
from tests.support.waiting import until, until_true

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as opened:
        yield opened


def _keeper(
    folder: Path, *, events: int | None = None, seconds: float | None = None, keys: Sequence[SigningKey] = (KEY,)
) -> CheckpointKeeper:
    policy = CheckpointPolicy(events, seconds, lambda: keys, folder, look_every=0.01)
    return CheckpointKeeper(policy, lambda: {BINDING.normalised()})


async def _row(ledger: Ledger) -> BindingRow:
    row = await ledger.binding(BINDING)
    assert row is not None
    return row


async def _kept(keeper: CheckpointKeeper, ledger: Ledger, folder: Path, count: int) -> list[Path]:
    """Look until there are so many notes."""
    stop = asyncio.Event()
    looking = asyncio.create_task(keeper.run_until(ledger, stop))
    await until(lambda: len(list(folder.glob("*/*.note"))) >= count or looking.done())
    stop.set()
    await looking
    return sorted(folder.glob("*/*.note"))


@pytest.mark.rules("G8")
async def test_g08_the_service_signs_the_head_of_what_it_writes(
    told_dsns: dict[str, str], ledger: Ledger, tmp_path: Path
) -> None:
    (note,) = await _kept(_keeper(tmp_path, events=1), ledger, tmp_path, 1)
    kept = trusted_checkpoint(note.read_bytes(), note.name, [KEY.public])
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as reader:
        report = await verify_binding(reader, BINDING, checkpoints=[kept])
    report.require_intact()
    last = await ledger.last_checkpoint((await _row(ledger)).id)
    assert last is not None
    assert kept.position < last.position == report.head_position


async def test_a_checkpoint_is_due_by_events_or_by_age_and_never_of_nothing_new(ledger: Ledger, tmp_path: Path) -> None:
    row = await _row(ledger)
    assert await _keeper(tmp_path, events=row.head_position).is_due(ledger, row)
    assert not await _keeper(tmp_path, events=row.head_position + 1).is_due(ledger, row)
    assert await _keeper(tmp_path, seconds=1e-6).is_due(ledger, row)
    assert not await _keeper(tmp_path, seconds=1e6).is_due(ledger, row)
    await _kept(_keeper(tmp_path, events=1), ledger, tmp_path, 1)
    signed = await _row(ledger)
    assert not await _keeper(tmp_path, events=1).is_due(ledger, signed)
    assert not await _keeper(tmp_path, seconds=1e-6).is_due(ledger, signed)
    await ledger.submit_commit(signed.id, make_commit(make_plan("run-of-later")))
    later = await _row(ledger)
    since = later.head_position - signed.head_position
    assert await _keeper(tmp_path, events=since).is_due(ledger, later)
    assert not await _keeper(tmp_path, events=since + 1).is_due(ledger, later)


async def test_nothing_is_signed_of_a_binding_that_another_process_writes(ledger: Ledger, tmp_path: Path) -> None:
    asked = 0

    def nobody() -> set[object]:
        nonlocal asked
        asked += 1
        return set()

    keeper = _keeper(tmp_path, events=1)
    keeper.held = nobody  # type: ignore[assignment] # an empty set of anything
    stop = asyncio.Event()
    looking = asyncio.create_task(keeper.run_until(ledger, stop))
    await until(lambda: asked > 2)
    stop.set()
    await looking
    assert await ledger.last_checkpoint((await _row(ledger)).id) is None


async def test_trouble_is_shown_and_ends_when_it_is_over(ledger: Ledger, tmp_path: Path) -> None:
    keys: list[SigningKey] = []

    def signing() -> list[SigningKey]:
        if not keys:
            raise NoSigningKeyError(checked="the keys", expected="one", found="none", next_action="make one")
        return keys

    policy = CheckpointPolicy(1, None, signing, tmp_path, look_every=0.01)
    keeper = CheckpointKeeper(policy, lambda: {BINDING.normalised()})
    stop = asyncio.Event()
    looking = asyncio.create_task(keeper.run_until(ledger, stop))
    await until(lambda: keeper.trouble != "")
    assert keeper.trouble.startswith("NoSigningKeyError")
    keys.append(KEY)

    async def published() -> bool:
        return keeper.trouble == "" and bool(list(tmp_path.glob("*/*.note")))

    await until_true(published)
    stop.set()
    await looking
