"""``replay --onto``: restore test; rebuild everything that was applied in an empty destination, and compare."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ledger.binding import DestinationBinding
from ledger.cli.chosen_bindings import one_binding
from ledger.cli.output import OutputForm, data_console, people, write_document, write_records
from ledger.cli.progress import progress
from ledger.cli.session import infrahub_settings, open_ledger, run_async
from ledger.cli.settings import DestinationSettings
from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.describe import object_text, value_text
from ledger.printable import visible

if TYPE_CHECKING:
    from consumers.drill import AppliedOperation, Drill
    from consumers.infrahub.settings import InfrahubSettings
    from ledger.audit.window import Place
    from ledger.cli.settings import Settings
    from ledger.store.ledger import BindingRow, Ledger

_RUN = "drill"


class NothingToRebuildError(ApplyLedgerError):
    """Nothing was applied up to the place of a restore test, so that it would show nothing."""


def drill(
    settings: Settings,
    onto: str,
    branch: str,
    url: str | None,
    record_branch: str | None,
    at: Place | None,
    output: OutputForm,
) -> int:
    """Rebuild what was applied up to a place, or the head; compare, say what came of it."""
    document = run_async(_drill(settings, onto, branch, url, record_branch, at))
    if output is OutputForm.JSON:
        write_document(document)
    elif output is OutputForm.NDJSON:
        write_records([document], stream="drill")
    else:
        _print(document)
    whole = not document["different"] and not document["not_rebuilt_total"]
    return ExitCode.DONE if whole else ExitCode.ERROR


async def _drill(
    settings: Settings, onto: str, branch: str, url: str | None, record_branch: str | None, at: Place | None
) -> dict[str, Any]:
    from consumers.drill import Drill, DrillGuard, require_empty
    from consumers.drill_comparison import DrillComparison
    from consumers.infrahub.connection import InfrahubOpener, declared, open_reader
    from ledger.audit.spill import ObjectSpill
    from ledger.audit.state import asserted_states
    from ledger.audit.window import last_position

    async with open_ledger(settings) as ledger:
        row = await one_binding(ledger, url, record_branch)
        target = _target(settings, onto, branch)
        _require_no_record(await ledger.bindings(), target)
        until = row.head_position if at is None else await last_position(ledger, row, at)
        kinds = {state.kind async for state in asserted_states(ledger, row, until=until)}
        if not kinds:
            raise NothingToRebuildError(
                checked=f"what was applied to {row.binding} up to position {until:,}",
                expected="an operation that was applied",
                found="none",
                next_action="name a later place with --at; `apply-ledger replay --url URL` shows positions and times",
            )
        async with (
            open_reader(target) as reader,
            InfrahubOpener(declared(target))(target.binding, run_id=_RUN, guard=DrillGuard()) as opened,
        ):
            known = {kind for kind in kinds if kind is not None and opened.schema.node(kind) is not None}
            await require_empty(reader, known)
            rebuilt = Drill(opened.writes)  # type: ignore[arg-type] # this opener's surface is a planned-write one
            await _assert_all(ledger, row, rebuilt, until)
            with ObjectSpill() as spill:
                comparison = DrillComparison(rebuilt, opened.schema, spill)
                async for state in asserted_states(ledger, row, until=until):
                    await comparison.expect(state)
                result = await comparison.compare(reader)
    return {
        "record": str(row.binding),
        "position": until,
        "onto": str(target.binding),
        "asserted": rebuilt.asserted,
        "not_rebuilt_total": rebuilt.failures,
        "equal": result.equal,
        "different": result.different,
        "passed_over": result.passed_over,
        "not_rebuilt": [entry.document() for entry in rebuilt.not_rebuilt],
        "differences": result.differences,
    }


def _target(settings: Settings, onto: str, branch: str) -> InfrahubSettings:
    """A declared destination, else one that is reached with the token of the environment."""
    wanted = DestinationBinding(url=onto, branch=branch)
    known = next((found for found in settings.destination if found.names(wanted)), None)
    return infrahub_settings(settings, known or DestinationSettings(url=onto, branch=branch))


def _require_no_record(rows: list[BindingRow], target: InfrahubSettings) -> None:
    from consumers.drill import DrillOntoRecordedDestinationError

    if any(row.binding.same_as(target.binding) and row.head_position for row in rows):
        raise DrillOntoRecordedDestinationError(
            checked=f"the target of the restore test, {target.binding}",
            expected="a place whose record is not in this ledger",
            found="a destination that this ledger writes to",
            next_action="name an empty branch or a fresh sandbox: apply-ledger sandbox",
        )


async def _assert_all(ledger: Ledger, row: BindingRow, rebuilt: Drill, until: int) -> None:
    with progress("operations") as report:
        async for applied in _applied(ledger, row, until):
            await rebuilt.take(applied)
            report("asserting", rebuilt.asserted + rebuilt.failures, None)


async def _applied(ledger: Ledger, row: BindingRow, until: int) -> AsyncIterator[AppliedOperation]:
    """Every operation that was applied up to a position, in the order of the log."""
    from consumers.drill import AppliedOperation
    from ledger.audit.outcome_lines import outcomes_with_lines
    from ledger.plan.model import DECODED, PlannedOperation

    async for outcome, line in outcomes_with_lines(ledger, row, until=until):
        if outcome.kind == "operation.applied":
            yield AppliedOperation(
                position=outcome.position,
                run_id=outcome.run_id or "",
                node_id=outcome.node_id,
                operation=PlannedOperation.model_validate_json(line, context=DECODED),
            )


def _print(document: dict[str, Any]) -> None:
    console = data_console()
    counts = ", ".join(f"{document[name]:,} {name.replace('_', ' ')}" for name in ("equal", "different", "passed_over"))
    whole = not document["different"] and not document["not_rebuilt_total"]
    verdict = ("rebuilt, and equal", "bold green") if whole else ("not rebuilt as it was", "bold red")
    console.print(Text(f"{document['record']} up to {document['position']:,} onto {document['onto']}"))
    console.print(Text.assemble("  ", verdict, f": {document['asserted']:,} operations asserted, "), end="")
    console.print(Text(f"{document['not_rebuilt_total']:,} not rebuilt; objects: {counts}"))
    for entry in document["not_rebuilt"]:
        where = f"{object_text(entry['kind'], entry['identity'])} (position {entry['position']:,})"
        people.print(visible(f"not rebuilt: {where}: {entry['why']}"))
    for entry in document["differences"]:
        fields = "; ".join(
            f"{name or 'the object'}: asserted {value_text(told['asserted'])}, found {value_text(told['found'])}"
            for name, told in entry["fields"].items()
        )
        people.print(visible(f"differs: {object_text(entry['kind'], entry['identity'])}: {fields}"))
    unnamed = document["not_rebuilt_total"] - len(document["not_rebuilt"])
    unnamed += document["different"] - len(document["differences"])
    if unnamed:
        people.print(f"and {unnamed:,} more that are not named")
