"""Checkpoints: what was signed and kept elsewhere is what a rewritten ledger cannot agree with (G8)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit import Break, Level, Status, VerifyReport, verify_binding
from ledger.audit.checkpoint import Checkpoint
from ledger.audit.errors import CheckpointRefusedError, NoTrustedKeyError
from ledger.audit.heads import TrustedCheckpoint, trusted_checkpoint
from ledger.audit.publish import Published, publish_checkpoint
from ledger.audit.signed_note import SigningKey, VerifyingKey
from ledger.events import CheckpointPublished, new_event
from ledger.store.errors import LedgerPermissionError
from ledger.store.ledger import Ledger
from tests.support.recorded_runs import BINDING, Recorder, make_plan
from tests.support.store import connection_to
from tests.support.tampering import cut_off, rechain, unguarded
from tests.support.told_story import CREATED

pytestmark = pytest.mark.integration

KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))


_LEVEL = Level.CHECKPOINTS


@pytest.fixture
async def ledger(told_dsns: dict[str, str]) -> AsyncIterator[Ledger]:
    async with await Ledger.open(told_dsns["writer"], allow_unsafe_fsync=True) as opened:
        yield opened


async def _publish(ledger: Ledger, *keys: SigningKey) -> Published:
    return await publish_checkpoint(ledger, (await ledger.bindings())[0], keys or (KEY,))


def _trusted(published: Published, *keys: VerifyingKey) -> TrustedCheckpoint:
    return trusted_checkpoint(published.note.encode(), "kept.note", keys or (KEY.public,))


async def _verify(
    dsns: dict[str, str], *kept: TrustedCheckpoint, resume: TrustedCheckpoint | None = None
) -> VerifyReport:
    async with await Ledger.open(dsns["reader"], allow_unsafe_fsync=True) as reader:
        return await verify_binding(reader, BINDING, checkpoints=kept, resume_from=resume)


def _failed(report: VerifyReport) -> set[Level]:
    return {level.level for level in report.levels if level.status is Status.FAILED}


@pytest.mark.rules("G8")
async def test_g08_a_ledger_extends_the_checkpoint_that_was_kept(told_dsns: dict[str, str], ledger: Ledger) -> None:
    published = await _publish(ledger)
    assert (published.new, published.sealed) == (True, 4)
    assert published.event_position == published.position + 1
    again = await _publish(ledger)
    assert (again.new, again.note, again.position) == (False, published.note, published.position)

    report = await _verify(told_dsns, _trusted(published))
    assert report.findings == ()
    level = report.level(Level.CHECKPOINTS)
    assert (level.status, level.checked, level.unchecked) == (Status.HELD, 1, [])
    assert f"events 1 to {published.position}: covered by kept.note, signed by tests" in level.notes


@pytest.mark.rules("G8")
async def test_g08_what_the_log_says_of_itself_makes_no_level_hold(told_dsns: dict[str, str], ledger: Ledger) -> None:
    published = await _publish(ledger)
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as reader:
        level = (await verify_binding(reader, BINDING, keys=[KEY.public])).level(Level.CHECKPOINTS)
        stranger = SigningKey("tests", Ed25519PrivateKey.generate()).public
        unknown = (await verify_binding(reader, BINDING, keys=[stranger])).level(Level.CHECKPOINTS)
    assert (level.status, level.checked) == (Status.NOT_CHECKED, 0)
    assert f"1 by tests, the last of event {published.position}" in level.notes[0]
    assert "known here: none" in unknown.notes[0]


@pytest.mark.rules("G8")
async def test_g08_a_kept_checkpoint_says_how_far_it_reaches(told_dsns: dict[str, str], ledger: Ledger) -> None:
    first = _trusted(await _publish(ledger))
    second = await publish_checkpoint_again(ledger)
    level = (await _verify(told_dsns, first)).level(Level.CHECKPOINTS)
    assert level.status is Status.HELD
    assert any(note.startswith(f"events 1 to {first.position}: ") for note in level.notes)
    head = second.event_position
    assert [text.split(":")[0] for text in level.unchecked] == [f"events {first.position + 1} to {head}"]
    report = await _verify(told_dsns, first, _trusted(second))
    both = report.level(Level.CHECKPOINTS)
    # the event that records a head stands right behind it: named, but nothing that needs another signature
    assert (both.checked, both.unchecked, report.covered_to) == (2, [], second.position)
    assert both.notes[-1] == f"event {head}: not covered; it records that kept.note was signed"


@pytest.mark.rules("G8")
async def test_g08_a_recorded_note_that_names_a_known_key_is_signed_by_it(
    told_dsns: dict[str, str], ledger: Ledger
) -> None:
    published = await _publish(ledger)
    forged = published.note[:-12] + "AAAAAAAAAA=\n"
    body = CheckpointPublished(
        position=published.position,
        head_hash=_trusted(published).head_hash.hex(),
        tree_root=_trusted(published).checkpoint.tree_root.hex(),
        frontier=[],
        signed_at="",
        keys=[],
        note=forged,
    )
    row = (await ledger.bindings())[0]
    event = new_event("checkpoint.published", body, url=row.url, branch=row.branch, n="forged")
    await ledger.append_control(row.id, [event])
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as reader:
        report = await verify_binding(reader, BINDING, keys=[KEY.public])
        assert (await verify_binding(reader, BINDING)).holds
    assert [finding.name for finding in report.findings] == ["CheckpointNotSigned"]
    assert report.first_break == Break(row.head_position + 1, "CheckpointNotSigned", Level.CHECKPOINTS)


@pytest.mark.rules("G8")
async def test_g08_a_pass_that_skips_says_so_on_every_level(told_dsns: dict[str, str], ledger: Ledger) -> None:
    start = _trusted(await _publish(ledger))
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("update ledger.plan_operation set line = replace(line, 'BuiltinTag', 'BuiltinTug')")
    report = await _verify(told_dsns, resume=start)
    assert report.holds, "an earlier plan is not looked at"
    skipped = {level.level: level.status for level in report.levels if level.unchecked}
    assert skipped == {
        Level.POSITIONS: Status.HELD,  # the event of the checkpoint was read
        Level.CHAIN: Status.HELD,
        Level.CATALOGUE: Status.HELD,
        Level.CHECKPOINTS: Status.HELD,
        Level.PLANS: Status.NOT_CHECKED,
        Level.OUTCOMES: Status.NOT_CHECKED,
        Level.PROJECTIONS: Status.NOT_CHECKED,
    }


@pytest.mark.rules("G8")
async def test_g08_a_checkpoint_before_the_place_where_reading_begins_is_compared_as_well(
    told_dsns: dict[str, str], ledger: Ledger
) -> None:
    first = _trusted(await _publish(ledger))
    start = _trusted(await publish_checkpoint_again(ledger))
    level = (await _verify(told_dsns, first, resume=start)).level(Level.CHECKPOINTS)
    assert (level.status, level.checked) == (Status.HELD, 2)
    assert any(text.startswith("the tree of kept.note") for text in level.unchecked)
    wrong = replace(first, checkpoint=replace(first.checkpoint, head_hash=b"x" * 32))
    report = await _verify(told_dsns, wrong, resume=start)
    assert [finding.name for finding in report.findings] == ["CheckpointMismatch"]


@pytest.mark.rules("G8")
@pytest.mark.parametrize("gone", ["the plan", "the run"])
async def test_g08_a_seal_of_which_nothing_is_stored_is_found(
    recording: Recorder, ledger_dsns: dict[str, str], gone: str
) -> None:
    plan = make_plan("run-sealed", creates=1, deletes=0)
    await recording.commit(plan)
    await _publish(recording.ledger)
    assert (await _verify(ledger_dsns)).findings == ()
    async with connection_to(ledger_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("delete from ledger.artifact where run_id = 'run-sealed'")
        if gone == "the plan":
            for table in ("plan_operation", "plan_coverage"):
                await admin.execute(
                    f"delete from ledger.{table} where plan_checksum = $1", bytes.fromhex(plan.checksum)
                )
            for table in ("plan_seal", "plan"):
                await admin.execute(f"delete from ledger.{table} where checksum = $1", bytes.fromhex(plan.checksum))
    report = await _verify(ledger_dsns)
    assert [finding.name for finding in report.findings] == ["SealedPlanMissing"]
    assert report.level(Level.PLANS).status is Status.FAILED


@pytest.mark.rules("G8")
@pytest.mark.parametrize("how", ["cut off", "re-chained"])
async def test_g08_what_only_a_checkpoint_finds_is_found_with_one(
    told_dsns: dict[str, str], ledger: Ledger, how: str
) -> None:
    kept = _trusted(await _publish(ledger))
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        if how == "cut off":
            await cut_off(admin, 6)
        else:
            await admin.execute("delete from ledger.event where kind in ('plan.sealed', 'checkpoint.published')")
            await admin.execute("update ledger.event set body = replace(body, 'node-1', 'node-9')")
            await rechain(admin)

    without = await _verify(told_dsns)
    assert Level.CHECKPOINTS not in _failed(without)
    if how == "re-chained":
        assert without.holds, "nothing inside the database can tell"
    report = await _verify(told_dsns, kept)
    assert Level.CHECKPOINTS in _failed(report)
    assert report.level(Level.CHECKPOINTS).findings[0].name == "CheckpointBeyondHead"


@pytest.mark.rules("G8")
async def test_g08_a_rewritten_past_with_the_same_length_is_found(told_dsns: dict[str, str], ledger: Ledger) -> None:
    published = await _publish(ledger)
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("update ledger.event set body = replace(body, 'node-1', 'node-9')")
        await rechain(admin)
    names = [finding.name for finding in (await _verify(told_dsns, _trusted(published))).findings]
    assert names == ["CheckpointMismatch", "CheckpointTreeMismatch"] * 2  # the recorded one, and the kept one


@pytest.mark.rules("G8")
async def test_g08_a_checkpoint_that_differs_is_told_as_a_range_not_as_the_place(
    told_dsns: dict[str, str], ledger: Ledger
) -> None:
    first = _trusted(await _publish(ledger))
    second = _trusted(await publish_checkpoint_again(ledger))
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute(
            "update ledger.event set recorded_at = recorded_at + interval '1 second' where position = $1",
            first.position + 1,
        )
        await rechain(admin)
    alone = await _verify(told_dsns, second)
    assert (alone.first_break, alone.covered_to) == (Break(second.position, "CheckpointMismatch", _LEVEL), None)
    assert alone.first_break is not None
    assert alone.first_break.after == 0
    assert f"at or before event {second.position:,}" in alone.findings[-2].found
    # whatever the order in which they are named, the one that agrees narrows it
    both = await _verify(told_dsns, second, first)
    assert both.first_break is not None
    assert (both.first_break.after, both.first_break.position) == (first.position, second.position)
    assert f"behind event {first.position:,}" in both.first_break.where
    assert f"events {first.position + 1:,} to {second.position:,}" in both.findings[-1].found
    assert both.covered_to == first.position
    assert "--against" in both.findings[-1].next_action


@pytest.mark.rules("G8")
async def test_g08_a_note_that_was_changed_or_is_of_another_key_proves_nothing(
    told_dsns: dict[str, str], ledger: Ledger
) -> None:
    published = await _publish(ledger)
    stranger = SigningKey("tests", Ed25519PrivateKey.generate())
    report = await _verify(told_dsns, _trusted(published, stranger.public))
    assert [finding.name for finding in report.findings] == ["CheckpointNotSigned"]
    forged = replace(published, note=published.note.replace(f"\n{published.position}\n", "\n3\n"))
    report = await _verify(told_dsns, _trusted(forged))
    assert "CheckpointNotSigned" in {finding.name for finding in report.findings}
    with pytest.raises(NoTrustedKeyError):
        trusted_checkpoint(published.note.encode(), "kept.note", [])


@pytest.mark.rules("G8")
async def test_g08_verification_goes_on_from_a_trusted_checkpoint(told_dsns: dict[str, str], ledger: Ledger) -> None:
    first = _trusted(await _publish(ledger))
    event = (await ledger.bindings())[0].head_position
    await ledger.store_detail(b"nothing")
    second = await publish_checkpoint_again(ledger)

    report = await _verify(told_dsns, first, _trusted(second), resume=first)
    assert report.findings == ()
    assert report.events == second.event_position - first.position
    assert event < second.position
    told = report.level(Level.CHECKPOINTS)
    assert any("were not read again" in text for text in told.unchecked)
    assert told.checked == 2

    wrong = replace(first, checkpoint=replace(first.checkpoint, head_hash=b"x" * 32))
    names = {finding.name for finding in (await _verify(told_dsns, wrong, resume=wrong)).findings}
    assert names >= {"CheckpointMismatch", "ChainLink"}


async def publish_checkpoint_again(ledger: Ledger) -> Published:
    """After something has happened: the seal of one plan is recorded again under another id."""
    from ledger.audit.publish import seal_of

    row = (await ledger.bindings())[0]
    seal = await seal_of(ledger, CREATED.checksum)
    await ledger.append_control(row.id, [new_event("plan.sealed", seal, url=row.url, branch=row.branch, n="again")])
    return await _publish(ledger)


@pytest.mark.rules("G8")
async def test_g08_a_signer_does_not_sign_what_does_not_chain(told_dsns: dict[str, str], ledger: Ledger) -> None:
    async with connection_to(told_dsns["admin"]) as admin, unguarded(admin):
        await admin.execute("update ledger.event set attempt = 7 where position = 4")
    with pytest.raises(CheckpointRefusedError, match="hash"):
        await _publish(ledger)
    assert await ledger.last_checkpoint((await ledger.bindings())[0].id) is None


@pytest.mark.rules("G8")
async def test_g08_a_seal_that_is_not_of_the_plan_and_a_forged_note_are_found(
    told_dsns: dict[str, str], ledger: Ledger
) -> None:
    from ledger.audit.publish import seal_of
    from ledger.events import PlanSealed

    row = (await ledger.bindings())[0]
    seal = PlanSealed(plan_checksum=CREATED.checksum, operations_count=3, lines_root="0" * 64)
    note = Checkpoint(row.url, row.branch, 2, b"r" * 32, b"h" * 32, datetime(2026, 11, 30, tzinfo=UTC))
    body = CheckpointPublished(
        position=3, head_hash="00" * 32, tree_root="00" * 32, frontier=[], signed_at="", keys=[], note=note.note([KEY])
    )
    # a true seal behind the false one does not cover it up: a proof would use the first
    await ledger.append_control(row.id, [new_event("plan.sealed", seal, url=row.url, branch=row.branch, n="first")])
    true = await seal_of(ledger, CREATED.checksum)
    told = {"plan.sealed": true, "checkpoint.published": body}
    events = [new_event(kind, said, url=row.url, branch=row.branch, n="x") for kind, said in told.items()]
    await ledger.append_control(row.id, events)
    found = {finding.name for finding in (await _verify(told_dsns)).findings}
    assert found == {"StoredPlanMismatch", "CheckpointNoteMismatch", "CheckpointMismatch", "CheckpointTreeMismatch"}


async def test_two_that_publish_at_once_both_record_what_they_signed(told_dsns: dict[str, str], ledger: Ledger) -> None:
    await _publish(ledger)
    await ledger.append_control((await ledger.bindings())[0].id, [])
    other = SigningKey("other", Ed25519PrivateKey.generate())
    both = await asyncio.gather(publish_checkpoint_again(ledger), _publish(ledger, other))
    assert {done.keys for done in both} <= {("tests",), ("other",)}
    assert (await _verify(told_dsns)).findings == ()


async def test_a_reader_cannot_publish(told_dsns: dict[str, str]) -> None:
    async with await Ledger.open(told_dsns["reader"], allow_unsafe_fsync=True) as reader:
        with pytest.raises(LedgerPermissionError):
            await _publish(reader)
