"""Fresh topics on a broker, as the program itself makes them."""

from __future__ import annotations

import uuid

from consumers.topics import TopicSettings, create_topics


async def new_topics(brokers: str) -> TopicSettings:
    """A topic of commits and one of events that nobody else has, with one partition each."""
    name = uuid.uuid4().hex[:8]
    settings = TopicSettings(
        brokers=brokers, commits_topic=f"commits-{name}", events_topic=f"events-{name}", partitions=1
    )
    await create_topics(settings)
    return settings
