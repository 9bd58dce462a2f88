"""``replay``: the events as they were recorded, or what they assert as of a position or a time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.audit.identities import identities_of
from ledger.cli.chosen_bindings import BranchOption, UrlOption, chosen_bindings, one_binding
from ledger.cli.drill_command import drill
from ledger.cli.event_words import event_words
from ledger.cli.output import (
    OutputForm,
    clock,
    people,
    write_document,
    write_record_line,
    write_rows,
    write_stream_head,
)
from ledger.cli.plan_commands import OutputOption
from ledger.cli.progress import progress
from ledger.cli.run_lookup import run_id_of
from ledger.cli.session import open_ledger, require_ledger, run_async, settings_of
from ledger.errors import UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit.window import Place
    from ledger.cli.settings import Settings
    from ledger.events import StoredEvent
    from ledger.store.ledger import BindingRow, Ledger

EVENT_COLUMNS = ("position", "recorded_at", "kind", "run_id", "operation_id", "ordinal", "attempt", "writer_epoch",
                 "says")  # fmt: skip
STATE_COLUMNS = ("kind", "identity", "position", "recorded_at", "run_id", "in_doubt", "fields")
STATE_SPARE = ("recorded_at", "run_id")
DIFF_COLUMNS = ("change", "kind", "identity", "position", "recorded_at", "run_id", "fields")
_SHOWN = 50


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Which events."""

    url: str | None
    branch: str | None
    run_id: str | None
    operation_id: str | None
    after: int
    start: Place | None
    end: Place | None
    kind: str | None
    identities: Sequence[dict[str, Any]]


RunOption = Annotated[str | None, typer.Option("--run", help="Only the events of this run.")]
OperationOption = Annotated[str | None, typer.Option("--operation", help="Only the events of this operation.")]
KindOption = Annotated[str | None, typer.Option("--kind", help="With --state or --diff: only objects of this kind.")]
IdentityOption = Annotated[
    list[str] | None,
    typer.Option("--identity", metavar="FIELD=VALUE", help="With --kind: only the events of this object."),
]
AfterOption = Annotated[int, typer.Option("--after", min=0, help="Only events after this position.")]
FromOption = Annotated[
    str | None, typer.Option("--from", metavar="PLACE", help="Begin at this position or time (UTC).")
]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="PLACE", help="End at this position or time (inclusive).")
]
StateOption = Annotated[bool, typer.Option("--state", help="Show the state of each object instead of events.")]
AtOption = Annotated[
    str | None, typer.Option("--at", metavar="PLACE", help="With --state or --onto: as of this position or time.")
]
DiffOption = Annotated[
    tuple[str, str] | None,
    typer.Option("--diff", metavar="A B", help="Show which objects differ between places A and B."),
]
OntoOption = Annotated[
    str | None,
    typer.Option(
        "--onto",
        metavar="ADDRESS",
        help="Restore test: send everything that was applied to the empty --branch at this address, and compare.",
    ),
]
RecordBranchOption = Annotated[
    str | None, typer.Option("--record-branch", help="With --onto: the branch whose record is rebuilt.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Maximum number of records; a table shows 50 by default.")
]


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("replay", short_help="List events, or the state of objects.")(replay)


def replay(
    context: typer.Context,
    run: RunOption = None,
    operation: OperationOption = None,
    kind: KindOption = None,
    identity: IdentityOption = None,
    url: UrlOption = None,
    branch: BranchOption = None,
    after: AfterOption = 0,
    start: FromOption = None,
    end: ToOption = None,
    state: StateOption = False,
    at: AtOption = None,
    diff: DiffOption = None,
    onto: OntoOption = None,
    record_branch: RecordBranchOption = None,
    limit: LimitOption = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """List events exactly as they were recorded, in order; or, with --state, the resulting state of the objects.

    With --onto it is a restore test: every applied operation is sent again, in order, to an empty Infrahub branch or a
    sandbox, and the result is compared with the recorded state. Nothing is recorded.

    A PLACE is a position, or a date or time in ISO 8601 (UTC unless a zone is given).
    """
    from ledger.audit.window import place_of

    settings = settings_of(context)
    if onto is not None:
        filters: dict[str, object] = {"--run": run, "--operation": operation, "--kind": kind, "--identity": identity}
        ranges: dict[str, object] = {"--after": after, "--from": start, "--to": end, "--limit": limit}
        _refuse_beside_onto(filters | ranges | {"--state": state, "--diff": diff})
        require_ledger(settings)
        until = None if at is None else place_of(at, option="--at", ends=True)
        return drill(settings, onto, branch or "main", url, record_branch, until, output)
    _require_one_question(state=state, at=at, diff=diff, kind=kind, identity=identity, record_branch=record_branch)
    wanted = _Wanted(
        url=url,
        branch=branch,
        run_id=None if run is None else run_id_of(run),
        operation_id=operation,
        after=after,
        start=None if start is None else place_of(start, option="--from"),
        end=None if end is None else place_of(end, option="--to", ends=True),
        kind=kind,
        identities=identities_of(identity) if identity else (),
    )
    require_ledger(settings)
    records, shape = _asked_for(settings, wanted, state=state, at=at, diff=diff)
    run_async(_write(records, shape, limit, output))
    return ExitCode.DONE


def _asked_for(
    settings: Settings, wanted: _Wanted, *, state: bool, at: str | None, diff: tuple[str, str] | None
) -> tuple[AsyncGenerator[dict[str, Any], None], _Shape]:
    """The records of the one question that was asked, and how they are written."""
    from ledger.audit.window import place_of

    if diff is not None:
        places = (place_of(diff[0], option="--diff", ends=True), place_of(diff[1], option="--diff", ends=True))
        return _changes(settings, wanted, places), _Shape("state-diff", DIFF_COLUMNS, STATE_SPARE, ("fields",))
    if state:
        place = None if at is None else place_of(at, option="--at", ends=True)
        return _states(settings, wanted, place), _Shape("state", STATE_COLUMNS, STATE_SPARE, ("fields",))
    known = () if wanted.run_id is None else ("run_id",)
    spare = (*known, "writer_epoch", "attempt", "ordinal", "recorded_at", "says")
    return _events(settings, wanted), _Shape("events", EVENT_COLUMNS, spare, ("says",))


def _refuse_beside_onto(given: Mapping[str, object]) -> None:
    unused = [name for name, value in given.items() if value]
    if unused:
        raise _together(
            f"--onto beside {', '.join(unused)}",
            "--at, --url, --branch and --record-branch alone",
            ", ".join(unused),
            "leave these out: everything that was applied up to --at is rebuilt",
        )


def _require_one_question(
    *,
    state: bool,
    at: str | None,
    diff: tuple[str, str] | None,
    kind: str | None,
    identity: list[str] | None,
    record_branch: str | None,
) -> None:
    """Options that mean nothing beside each other are refused rather than passed over."""
    if record_branch is not None:
        raise _together("--record-branch", "--onto beside it", "no --onto", "use --branch for the record")
    if at is not None and not state:
        raise _together("--at", "--state or --onto beside it", "neither", "add one of them, or use --to for events")
    if state and diff is not None:
        raise _together("--state and --diff", "one of them", "both", "leave one of them out")
    if identity and kind is None:
        raise _together("--identity", "--kind beside it", "no --kind", "name the kind of the object")
    if identity and (state or diff is not None):
        raise _together("--identity", "a list of events", "--state or --diff", "use `apply-ledger history` or --kind")
    if kind is not None and not identity and not state and diff is None:
        raise _together("--kind", "--state, --diff or --identity beside it", "none", "add one of these options")


def _together(checked: str, expected: str, found: str, next_action: str) -> UsageError:
    return UsageError(checked=checked, expected=expected, found=found, next_action=next_action)


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a stream is written: its name, and the columns of its table, as for :func:`write_rows`."""

    stream: str
    columns: Sequence[str]
    spare: Sequence[str]
    folded: Sequence[str]


async def _write(
    records: AsyncGenerator[dict[str, Any], None], shape: _Shape, limit: int | None, form: OutputForm
) -> None:
    # closed here: what is left to the end of the loop is closed beside the connections that it reads from
    async with aclosing(records):
        if form is OutputForm.NDJSON:
            write_stream_head(shape.stream)
            async for record in _first(records, limit):
                write_record_line(record)
        elif form is OutputForm.JSON:
            write_document([record async for record in _first(records, limit)])
        else:
            await _print(records, shape, limit or _SHOWN)


async def _print(records: AsyncIterator[dict[str, Any]], shape: _Shape, limit: int) -> None:
    rows = [_shown(record) async for record in _first(records, limit + 1)]
    shown = rows[:limit]
    write_rows(
        shown,
        form=OutputForm.TABLE,
        stream=shape.stream,
        columns=shape.columns,
        spare=shape.spare,
        folded=shape.folded,
    )
    _tell_place(shape.stream, rows)
    if len(rows) > len(shown):  # to say how many there are would mean to read them all
        people.print(f"the first {len(shown):,}, and more follow; --limit shows more, --from later ones", style="dim")


def _tell_place(stream: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Of which place in the log a table of states is; a time or a position beyond the end names another one."""
    ends = {(row["url"], row["branch"]): row for row in rows} if stream != "events" else {}
    for (url, branch), row in ends.items():
        place = f"as of event {row['as_of']:,}" if stream == "state" else f"from event {row['from']:,} to {row['to']:,}"
        people.print(f"{url} [{branch}]: {place}", style="dim")


def _shown(record: dict[str, Any]) -> dict[str, Any]:
    shown = {**record, "recorded_at": clock(record["recorded_at"]), "in_doubt": record.get("in_doubt") or None}
    if "body" in record:
        return shown | {"says": event_words(record["kind"], record["body"]) or None}
    if not record["fields"] and record.get("delete_recorded"):
        shown["fields"] = "a plan recorded the wish to delete it"
    return shown


async def _first(records: AsyncIterator[dict[str, Any]], limit: int | None) -> AsyncIterator[dict[str, Any]]:
    left = limit
    async for record in records:
        if left == 0:
            return
        yield record
        left = None if left is None else left - 1


async def _events(settings: Settings, wanted: _Wanted) -> AsyncGenerator[dict[str, Any], None]:
    from ledger.audit import replay_record
    from ledger.audit.window import before, last_position

    async with open_ledger(settings) as ledger:
        rows = await chosen_bindings(ledger, wanted.url, wanted.branch, wanted.run_id)
        positions = await _positions_of_object(ledger, rows, wanted)
        for row in rows:
            after = max(wanted.after, await before(ledger, row, wanted.start))
            until = None if wanted.end is None else await last_position(ledger, row, wanted.end)
            async for event in _events_of(ledger, row, wanted.run_id, after, until, positions):
                if wanted.operation_id in (None, event.operation_id):
                    yield replay_record(event)


async def _positions_of_object(
    ledger: Ledger, rows: Sequence[BindingRow], wanted: _Wanted
) -> dict[tuple[str, str], list[int]] | None:
    """By binding, where the outcomes of the object stand that was named; None where none was.

    Raises:
        NeverWrittenError: nothing was ever attempted on it.
    """
    if not wanted.identities:
        return None
    from ledger.audit.history import require_histories

    found = await require_histories(ledger, rows, str(wanted.kind), wanted.identities)
    return {(entry.url, entry.branch): [told.outcome.position for told in entry.assertions] for entry in found}


async def _events_of(
    ledger: Ledger,
    row: BindingRow,
    run_id: str | None,
    after: int,
    until: int | None,
    positions: Mapping[tuple[str, str], Sequence[int]] | None,
) -> AsyncIterator[StoredEvent]:
    """The events of a binding, of one run, or at some positions."""
    if positions is None:
        async for event in ledger.events(row.id, after=after, until=until, run_id=run_id):
            yield event
        return
    end = row.head_position if until is None else until
    for position in positions.get((row.url, row.branch), ()):
        if after < position <= end:
            async for event in ledger.events(row.id, after=position - 1, until=position):
                if run_id in (None, event.run_id):
                    yield event


async def _states(settings: Settings, wanted: _Wanted, at: Place | None) -> AsyncGenerator[dict[str, Any], None]:
    from ledger.audit.close_objects import require_known_kind
    from ledger.audit.state import state_records
    from ledger.audit.window import last_position

    async with open_ledger(settings) as ledger:
        rows, found = await chosen_bindings(ledger, wanted.url, wanted.branch), False
        for row in rows:
            until = await last_position(ledger, row, at)
            with progress("events") as report:
                async for record in state_records(
                    ledger,
                    row,
                    until=until,
                    kind=wanted.kind,
                    progress=lambda done, all_: report("folding", done, all_),
                ):
                    found = True
                    yield record
        if wanted.kind is not None and not found:
            await require_known_kind(ledger, rows, wanted.kind)


async def _changes(
    settings: Settings, wanted: _Wanted, places: tuple[Place, Place]
) -> AsyncGenerator[dict[str, Any], None]:
    """Two positions mean something in one log only, so there must be one."""
    from ledger.audit.close_objects import require_known_kind
    from ledger.audit.state import change_records
    from ledger.audit.window import last_position

    async with open_ledger(settings) as ledger:
        row = await one_binding(ledger, wanted.url, wanted.branch)
        first, second = [await last_position(ledger, row, place) for place in places]
        found = False
        with progress("events") as report:
            async for record in change_records(
                ledger,
                row,
                first=first,
                second=second,
                kind=wanted.kind,
                progress=lambda done, all_: report("folding", done, all_),
            ):
                found = True
                yield record
        if wanted.kind is not None and not found:
            await require_known_kind(ledger, [row], wanted.kind)
