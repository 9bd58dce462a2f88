"""``doctor``: brokers and topics, if Kafka is configured."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from ledger.checkup import CheckResult, failure, good, warning
from ledger.cli.kafka_commands import topic_settings
from ledger.errors import ApplyLedgerError

if TYPE_CHECKING:
    from ledger.cli.settings import Settings


async def of_kafka(settings: Settings) -> AsyncGenerator[CheckResult, None]:
    """What the guarantees need of the brokers, one result for each thing; nothing where no brokers are configured."""
    if not settings.kafka.is_configured:
        return
    from consumers.topics import Verdict, check_topics

    subject = f"Kafka at {settings.kafka.brokers}"
    try:
        checks = await check_topics(topic_settings(settings.kafka))
    except ApplyLedgerError as exc:
        yield CheckResult(subject, "brokers", failure(f"{exc.checked}: {exc.found}", exc.next_action))
        return
    yield CheckResult(subject, "brokers", good("they answer"))
    for check in checks:
        found = f"{check.found}; needed: {check.expected}"
        if check.verdict is Verdict.HOLDS:
            yield CheckResult(subject, check.checked, good(check.found))
        elif check.verdict is Verdict.WEAK:
            yield CheckResult(subject, check.checked, warning(found, check.next_action))
        else:
            yield CheckResult(subject, check.checked, failure(found, check.next_action))
