"""``history`` and ``blame``: every write of one object, and the run that set each of its values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from ledger.audit.identities import identities_of
from ledger.cli.chosen_bindings import BranchOption, UrlOption, chosen_bindings
from ledger.cli.output import OutputForm, clock, data_console, write_document, write_records, write_rows
from ledger.cli.plan_commands import OutputOption
from ledger.cli.session import open_ledger, require_ledger, run_async, settings_of
from ledger.exit_codes import ExitCode
from ledger.plan.describe import object_text, value_text
from ledger.printable import visible

if TYPE_CHECKING:
    from ledger.audit.history import ObjectHistory
    from ledger.cli.settings import Settings

KindArgument = Annotated[str, typer.Argument(metavar="KIND", help="The object's kind, as the schema names it.")]
IdentityArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FIELD=VALUE",
        help="Its identity: FIELD=VALUE pairs, or one JSON object as in plans.",
    ),
]

HISTORY_COLUMNS = ("position", "recorded_at", "outcome", "action", "source", "actor", "run_id", "reason", "changes")
BLAME_COLUMNS = ("attribute", "value", "position", "recorded_at", "source", "actor", "run_id", "reason")
SPARE = ("position", "source", "run_id", "action")
"""Who, when and why are what these commands are asked for: they are never left out."""
FOLDED = ("attribute", "value", "changes", "reason", "in_doubt")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("history", short_help="Show every write of one object.")(history)
    app.command("blame", short_help="Show which run set each value of one object.")(blame)


def history(
    context: typer.Context,
    kind: KindArgument,
    identity: IdentityArgument,
    url: UrlOption = None,
    branch: BranchOption = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Show every attempt to write one object, oldest first, whether applied, failed or unknown.

    Values are those that plans wrote and those that they had observed before; the destination is not read.
    """
    found = _found(context, kind, identity, url, branch)
    if output is OutputForm.JSON:
        write_document([entry.document() for entry in found])
    elif output is OutputForm.NDJSON:
        write_records(_flat(found, "assertions", [entry.document() for entry in found]), stream="history")
    else:
        for entry in found:
            _heading(entry)
            rows = [_history_row(assertion) for assertion in entry.document()["assertions"]]
            write_rows(rows, form=output, stream="history", columns=HISTORY_COLUMNS, spare=SPARE, folded=FOLDED)
            _tell_other_nodes(entry)
    return ExitCode.DONE


def blame(
    context: typer.Context,
    kind: KindArgument,
    identity: IdentityArgument,
    url: UrlOption = None,
    branch: BranchOption = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Show for each attribute of one object its value, and the event, run, plan, source, actor and reason that set it.

    A later attempt whose answer was lost may have written another value: such an attribute is marked as in doubt.
    `--output json` also has the old values and all earlier writes.
    """
    found = _found(context, kind, identity, url, branch)
    documents = [entry.blame() for entry in found]
    if output is OutputForm.JSON:
        write_document(documents)
    elif output is OutputForm.NDJSON:
        write_records(_flat(found, "attributes", documents), stream="blame")
    else:
        for entry, document in zip(found, documents, strict=True):
            _heading(entry)
            rows = [_blame_row(attribute) for attribute in document["attributes"]]
            columns = [*BLAME_COLUMNS, *(["in_doubt"] if any(row["in_doubt"] for row in rows) else [])]
            write_rows(rows, form=output, stream="blame", columns=columns, spare=SPARE, folded=FOLDED)
            _tell_other_nodes(entry)
            for deleted in document["deletes_recorded"]:
                _say(
                    f"a plan wanted it deleted: at position {deleted['position']:,} run {deleted['run_id']} of source"
                    f" {deleted['source']} recorded the wish; this program never sends a delete",
                    style="yellow",
                )
    return ExitCode.DONE


def _found(
    context: typer.Context, kind: str, identity: Sequence[str], url: str | None, branch: str | None
) -> list[ObjectHistory]:
    settings = settings_of(context)
    identities = identities_of(identity)
    require_ledger(settings)
    return run_async(_histories(settings, kind, identities, url, branch))


async def _histories(
    settings: Settings, kind: str, identities: Sequence[Mapping[str, Any]], url: str | None, branch: str | None
) -> list[ObjectHistory]:
    from ledger.audit.history import require_histories

    async with open_ledger(settings) as ledger:
        return await require_histories(ledger, await chosen_bindings(ledger, url, branch), kind, identities)


def _flat(
    found: Sequence[ObjectHistory], part: str, documents: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """One record for each assertion or attribute, with the object that it is of."""
    for entry, document in zip(found, documents, strict=True):
        for record in document[part]:
            yield {**entry.head(), **record}


def _heading(entry: ObjectHistory) -> None:
    node = f", node id {visible(node)}" if (node := entry.node_id()) is not None else ""
    _say(f"{object_text(entry.kind, entry.identity)} on {entry.url} [{entry.branch}]{node}")


def _tell_other_nodes(entry: ObjectHistory) -> None:
    """An object that came back under another id was taken away in between, by somebody whom no ledger saw."""
    for change in entry.node_changes():
        _say(
            f"another node id since position {change['position']:,} ({change['action']}, run {change['run_id']}):"
            f" {visible(change['node_id'])} instead of {visible(change['before'])}; the object that had the earlier id"
            " was removed or renamed outside of this ledger",
            style="yellow",
        )


def _history_row(assertion: Mapping[str, Any]) -> dict[str, Any]:
    changes = ", ".join(_change(name, change) for name, change in assertion["fields"].items())
    return {**assertion, "recorded_at": clock(assertion["recorded_at"]), "changes": changes or assertion["error"]}


def _blame_row(attribute: Mapping[str, Any]) -> dict[str, Any]:
    doubts = ", ".join(f"{entry['position']:,}: {value_text(entry['value'])}" for entry in attribute["in_doubt"])
    return {
        **attribute,
        "attribute": attribute["name"],
        "value": value_text(attribute["value"]),
        "recorded_at": clock(attribute.get("recorded_at")),
        "in_doubt": doubts or None,
    }


def _change(name: str, change: Mapping[str, Any]) -> str:
    value = value_text(change["value"])
    if "before" not in change:
        return f"{name}: {value}"
    before = value_text(change["before"])
    return f"{name}: {value} (as it was)" if before == value else f"{name}: {before} → {value}"


def _say(text: str, *, style: str = "") -> None:
    """What belongs to the answer, so that it stays with the table when that goes to a file."""
    data_console().print(Text(text, style=style), soft_wrap=True)
