"""``verify --from-kafka``: verifies the chain from the topic only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from ledger.cli.output import OutputForm, people, write_document, write_records, write_rows
from ledger.cli.progress import progress
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit.topic import TopicAudit
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings

_COLUMNS = ("url", "branch", "holds", "events", "repeats", "head_position", "breaks", "first_break_position",
            "first_break_kind", "head_hash")  # fmt: skip
_SPARE = ("head_hash", "repeats", "first_break_kind")


class NothingOnTopicError(ApplyLedgerError):
    """The topic contains no matching event: there is nothing to verify."""


async def audit_topic(settings: Settings) -> TopicAudit:
    """Read the whole topic of events.

    Raises:
        ConfigurationError: no brokers are configured.
        BrokerUnavailableError, MissingTopicError: it cannot be read.
    """
    from consumers.relay.topic_reader import read_topic
    from ledger.audit.topic import TopicAudit

    audit = TopicAudit()
    with progress("messages") as report:
        await read_topic(
            settings.kafka.relay_settings(),
            audit.feed,
            progress=lambda done, total: report("verifying", done, total),
        )
    return audit


def show_topic_audit(audit: TopicAudit, wanted: DestinationBinding | None, branch: str | None, form: OutputForm) -> int:
    """Print what was found, for all bindings or those that were asked for; returns the exit code.

    Raises:
        NothingOnTopicError: there is nothing to show.
    """
    rows: list[dict[str, Any]] = [
        binding.document()
        for (url, name), binding in audit.bindings.items()
        if (wanted is None or wanted.url == url) and branch in (None, name)
    ]
    if form is OutputForm.JSON:
        document = {"bindings": rows, "messages": audit.messages, "unreadable": audit.total_unreadable}
        write_document(document | {"findings": [finding.model_dump(mode="json") for finding in audit.findings]})
    elif form is OutputForm.NDJSON:
        write_records(rows, stream="verify-topic")
    else:
        write_rows(rows, form=form, stream="verify-topic", columns=_COLUMNS, spare=_SPARE)
    for finding in audit.findings:
        people.print(Text(str(finding), style="red"))
    if not audit.holds:
        return ExitCode.TAMPERED
    if not rows:
        raise NothingOnTopicError(
            checked="the events on the topic",
            expected="at least one matching event",
            found=f"none among {audit.messages:,} messages",
            next_action="let the relay of `apply-ledger work` run, or check the topic's name and --url",
        )
    people.print(
        "the chain on the topic holds; to check whether its end is the end of the ledger, use `apply-ledger verify`",
        style="dim",
    )
    return ExitCode.DONE
