"""``kafka init``: creates the topics with the settings that the guarantees need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ledger.cli.output import OutputForm, next_command, people, write_rows
from ledger.cli.plan_commands import OutputOption
from ledger.cli.session import run_async, settings_of
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from consumers.topics import TopicSettings
    from ledger.cli.kafka_settings import KafkaSettings

_COLUMNS = ("topic", "state", "partitions", "replication", "min.insync.replicas", "retention.ms", "max.message.bytes")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    kafka = typer.Typer(no_args_is_help=True, help="The topics of plan commits and of ledger events.")

    @kafka.callback()
    def _group() -> None:
        """Without it a single command would lose its name."""

    kafka.command("init", short_help="Create the topics with the settings that the guarantees need.")(init)
    app.add_typer(kafka, name="kafka", short_help="Create and check the topics.")


def topic_settings(
    kafka: KafkaSettings,
    *,
    partitions: int | None = None,
    replication: int | None = None,
    commit_retention_days: int | None = None,
) -> TopicSettings:
    """The topics of this installation; what is None keeps its default.

    Raises:
        ConfigurationError: no brokers are configured, or what belongs to them is wrong.
    """
    from consumers.topics import TopicSettings

    given = {"partitions": partitions, "replication": replication, "commit_retention_days": commit_retention_days}
    return TopicSettings.model_validate(
        {
            "brokers": kafka.require_brokers(),
            "security": kafka.security(),
            "client_id": f"{kafka.client_id}-admin",
            "commits_topic": kafka.commits_topic,
            "events_topic": kafka.events_topic,
            **{name: value for name, value in given.items() if value is not None},
        }
    )


def init(
    context: typer.Context,
    partitions: Annotated[
        int | None, typer.Option("--partitions", min=1, help="Partitions of each new topic; default 6.")
    ] = None,
    replication: Annotated[
        int | None,
        typer.Option(
            "--replication", min=1, help="Copies of each message; default 3, or the number of brokers if it is smaller."
        ),
    ] = None,
    commit_retention_days: Annotated[
        int | None,
        typer.Option("--commit-retention-days", min=1, help="How long commits wait for an intake; default 30."),
    ] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Create missing topics, and report settings of existing ones that differ. Repeating it is harmless."""
    from consumers.topics import create_topics

    settings = topic_settings(
        settings_of(context).kafka,
        partitions=partitions,
        replication=replication,
        commit_retention_days=commit_retention_days,
    )
    states = run_async(create_topics(settings))
    rows = [
        {
            "topic": state.name,
            "state": state.state,
            "partitions": state.partitions,
            "replication": state.replication,
            **state.settings,
        }
        for state in states
    ]
    write_rows(rows, form=output, stream="topics", columns=_COLUMNS, spare=("max.message.bytes", "retention.ms"))
    if any(state.replication == 1 for state in states):
        people.print("each message has only one copy: it is lost if the disk of its broker fails", style="yellow")
    next_command("apply-ledger work")
    return ExitCode.DONE
