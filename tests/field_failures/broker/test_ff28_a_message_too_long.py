"""FF28: a commit names its plan and does not carry it; what does not fit is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from consumers.intake.taking import MessageTaker
from ledger.commit import MAX_REASON_BYTES
from ledger.commit_message import MAX_MESSAGE_BYTES, MessageTooLargeError, encode_commit
from ledger.store.ledger import Ledger
from producers.publish import CommitPublisher, CommitRejectedError
from tests.support.commit_topic import CommitTopic
from tests.support.committed_plans import BINDING, commit_of, in_order, save, tag
from tests.support.store import make_commit

pytestmark = [pytest.mark.integration, pytest.mark.broker]


@pytest.mark.parametrize("plan", ["20,000 operations", "one operation with 2 MiB of text"])
async def test_ff28_a_plan_of_any_size_is_committed_by_a_small_message(
    plan: str, topic: CommitTopic, inbox: Ledger, tmp_path: Path
) -> None:
    many = [tag(f"tag-{number}") for number in range(20_000)]
    operations = in_order([tag("big", description="x" * 2 * 1024 * 1024)]) if plan.startswith("one") else many
    run_dir = save(tmp_path, "20261129T1900-0a1b2c3d", operations)
    commit = commit_of(tmp_path, run_dir)

    async with CommitPublisher(topic.publish_settings) as publisher:
        place = await publisher.publish(commit)
    await topic.read_to_the_end(MessageTaker(inbox, [BINDING]).take)

    assert (place.topic, place.offset) == (topic.name, 0)
    assert len(encode_commit(commit).value) < 4096
    assert await inbox.run_commit(await inbox.register_binding(BINDING), commit.run_id) == commit


@pytest.mark.rules("G11")
@pytest.mark.parametrize(("field", "limit"), [("reason", MAX_REASON_BYTES), ("actor", 1024)])
async def test_ff28_a_text_that_does_not_fit_is_refused_by_name_before_anything_is_sent(
    field: str, limit: int, topic: CommitTopic
) -> None:
    async with CommitPublisher(topic.publish_settings) as publisher:
        await publisher.publish(make_commit(**{field: "x" * limit}))
        with pytest.raises(MessageTooLargeError, match=f"the field {field} .*at most {limit:,} bytes"):
            await publisher.publish(make_commit(**{field: "é" * (limit // 2 + 1)}))
        with pytest.raises(MessageTooLargeError, match=f"{MAX_MESSAGE_BYTES:,} bytes"):
            await publisher.publish(make_commit(artifact="x" * MAX_MESSAGE_BYTES))

        assert await topic.end() == 1
        await publisher.publish(make_commit())
    assert await topic.end() == 2


async def test_ff28_the_longest_commit_that_may_be_published_can_be_taken(topic: CommitTopic, inbox: Ledger) -> None:
    """Every limit behind the message is wider: the inbox, the event, the broker's default."""
    longest = make_commit(reason="\x01" * MAX_REASON_BYTES, actor="a" * 1024, traceparent="0" * 200)
    with pytest.raises(MessageTooLargeError):  # six bytes for each control character
        encode_commit(longest)
    fits = make_commit(reason='"' * MAX_REASON_BYTES, actor='"' * 1024)

    async with CommitPublisher(topic.publish_settings) as publisher:
        await publisher.publish(fits)
    await topic.read_to_the_end(MessageTaker(inbox, [fits.binding]).take)

    assert await inbox.run_commit(await inbox.register_binding(fits.binding), fits.run_id) == fits


async def test_ff28_what_the_broker_refuses_is_told_and_the_next_commit_goes_through(topic: CommitTopic) -> None:
    """After a refused batch the client's sequence has a gap for ever; it must not be used again."""
    nowhere = topic.publish_settings.model_copy(update={"topic": "no-such-topic", "request_timeout": 0.5})
    async with CommitPublisher(nowhere) as publisher:
        with pytest.raises(CommitRejectedError, match="nothing was published"):
            await publisher.publish(make_commit())
    await topic.limit(1000)
    async with CommitPublisher(topic.publish_settings) as publisher:
        with pytest.raises(CommitRejectedError, match="MessageSizeTooLargeError"):
            await publisher.publish(make_commit(reason="x" * 2000))
        await topic.limit(500_000)
        assert (await publisher.publish(make_commit())).offset == 0
