"""One run, printed for people: state, counts that add up to its plan, what happened to it, and how it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ledger.cli.output import clock, data_console, next_command, people
from ledger.cli.run_results import state_word
from ledger.plan.describe import object_text
from ledger.printable import words

if TYPE_CHECKING:
    from ledger.cli.run_results import RunResult
    from ledger.store.ledger import BindingRow

STATE_STYLES = {
    "applied": "green",
    "open": "yellow",
    "running": "cyan",
    "stopped": "yellow",
    "failed": "red",
    "interrupted": "red",
    "refused": "red",
}
ALLOWING = {
    "StalePlanError": "--allow-stale",
    "OverlapRefusedError": "--on-overlap warn",
    "DestinationBindingMismatchError": "--allow-destination-change",
}
"""Refusals that a policy lifts, and how a resumption asks for it."""
RESUMABLE = frozenset({"stopped", "failed", "interrupted", "refused"})
COUNTS = ("planned", "applied", "skipped", "failed", "unknown", "not_attempted")
OVERLAP_LIMIT = 20
ATTEMPT_LIMIT = 20
STEP_LIMIT = 20
"""As many steps as a page of the dashboard shows."""


def print_run(document: Mapping[str, Any]) -> None:
    """Print a run's document on stdout."""
    console = data_console()
    word = word_of(document)
    again = f" again; it was {document['state']} before" if document["running"] and document["state"] != "open" else ""
    console.print(
        Text.assemble(
            (f"run {document['run_id']} ", "bold"),
            (word, f"bold {STATE_STYLES[word]}"),
            again,
            f"  source {words(str(document['source']))}",
        )
    )
    counts = [f"{document[name] or 0:,} {name.replace('_', ' ')}" for name in COUNTS]
    if document["operations_per_second"] is not None:
        counts.append(f"{document['operations_per_second']:,.0f} operations/s")
    console.print("  " + " · ".join(counts), soft_wrap=True)
    console.print(f"  {_events(document)} · plan {document['plan_checksum']}", soft_wrap=True, style="dim")
    _print_now(document)
    _print_happened(document["happened"])
    if document["state"] == "refused" and document["started_position"] is not None and not document["running"]:
        earlier = f"  this attempt wrote nothing; writes of earlier attempts stay: {counts[1]}"
        console.print(Text(earlier, style="yellow"), soft_wrap=True)
    _print_failure(document)
    told = {document["failed_operation"]}
    _print_attempts([it for it in document["attempts"] if len(it["attempts"]) > 1 or it["operation_id"] not in told])
    if document["skipped_delete_count"]:
        skipped = f"  warning: {document['skipped_delete_count']:,} recorded deletes were not executed"
        console.print(Text(skipped, style="yellow"))
    _print_overlaps(document)


def word_of(document: Mapping[str, Any]) -> str:
    """The state of a run in one word, as the list of runs has it."""
    return state_word(document["state"], running=document["running"], written=document["writer"] is not None)


def _events(document: Mapping[str, Any]) -> str:
    """Where a run stands in the log; what others recorded in between is not of it."""
    first, last = document["committed_position"], document["position"]
    if first is None:
        return f"ledger positions up to {last:,}"
    others = last - first + 1 - document["events"]
    between = f" ({document['events']:,} events of this run, {others:,} of others between them)" if others > 0 else ""
    return f"ledger positions {first:,} to {last:,}{between}"


def _print_now(document: Mapping[str, Any]) -> None:
    """Who writes the run, or that nobody does, and what is ordered for it and not carried out yet."""
    console, writer, mark = data_console(), document["writer"], document["in_flight"]
    if document["running"] and writer is not None:
        said = f"  written by {words(writer['host'] or '?')}, which holds the lease since {clock(writer['since'])}"
        if (pace := document["progress"]) is not None:
            said += f" · {pace['operations_per_second']:,.0f}/s, about {pace['seconds_to_go']:,} s to go"
        console.print(Text(said), soft_wrap=True)
    elif document["running"]:
        console.print(Text("  no process writes it now; its order stays valid", style="yellow"), soft_wrap=True)
        if mark is not None:
            doubt = (
                f"  in flight: operation {mark['ordinal']:,}, attempt {mark['attempt']}, counted as not attempted; it"
                " may have been written, and the next writer records it as unknown"
            )
            console.print(Text(doubt, style="yellow"), soft_wrap=True)
    for order in waiting(document):
        said = f"  waiting: {order['kind']}, ordered {order_words(order)}"
        console.print(Text(said, style="yellow"), soft_wrap=True)


def waiting(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The open orders of a run that nobody has begun to carry out."""
    begun = ("commit", "resume") if document["running"] else ()
    return [order for order in document["open_orders"] if order["kind"] not in begun]


def order_words(order: Mapping[str, Any]) -> str:
    """When an order was given, by whom and why."""
    reason = f": {order['reason']}" if order["reason"] else ""
    return words(f"{clock(order['received_at'])} by {order['by']}{reason}")


def _print_happened(happened: Sequence[Mapping[str, Any]]) -> None:
    """What happened to the run as a whole, oldest first: what, when, at which event, by whom and why."""
    console = data_console()
    shown = happened[-STEP_LIMIT:]
    if len(shown) < len(happened):
        console.print(f"  … {len(happened) - len(shown):,} earlier steps; --output json has them", style="dim")
    width = max((len(f"{step['position']:,}") for step in shown), default=0)
    for step in shown:
        by = f"by {step['by']}" if step["by"] else ""
        told = ", ".join(text for text in (step["detail"], by) if text)
        told += f": {step['reason']}" if step["reason"] else ""
        line = f"  {step['what']:<11}  {clock(step['at'])}  event {step['position']:>{width},}  {told}"
        console.print(Text(words(line).rstrip()), soft_wrap=True)


def _print_failure(document: Mapping[str, Any]) -> None:
    if document["failed_operation"] is None:
        return
    console = data_console()
    proven = document["failed_operation_wrote"] is False
    wrote = "proven to have written nothing" if proven else "may have written"
    console.print(Text(f"  failed operation {document['failed_operation']}: {wrote}", style="red"))
    if document.get("failure"):
        reason = f"  {document['failure']['error']}: {document['failure']['message']}"
        console.print(Text(words(reason), style="red"), soft_wrap=True)


def _print_attempts(operations: Sequence[Mapping[str, Any]]) -> None:
    """Operations that did not succeed at once, with what became of each attempt."""
    console = data_console()
    for operation in operations[:ATTEMPT_LIMIT]:
        attempts = ", ".join(
            f"attempt {attempt['attempt']} {attempt['outcome']}"
            f" ({attempt['error'] + ', ' if attempt['error'] else ''}event {attempt['position']:,})"
            for attempt in operation["attempts"]
        )
        line = f"  operation {operation['ordinal']:,} ({operation['operation_id']}): {attempts}"
        console.print(Text(words(line)), soft_wrap=True)
    if len(operations) > ATTEMPT_LIMIT:
        console.print(f"  … and {len(operations) - ATTEMPT_LIMIT:,} more; --output json has them", style="dim")


def _print_overlaps(document: Mapping[str, Any]) -> None:
    overlaps, total = document["overlaps"], document["overlaps_total"]
    if not overlaps:
        return
    console = data_console()
    console.print(
        Text(f"  writes objects that other sources have written since the plan was made: {total:,}", style="yellow")
    )
    for overlap in overlaps[:OVERLAP_LIMIT]:
        fields = words(", ".join(overlap["fields"]))
        differ = f"the values differ in {fields}" if fields else "no value differs"
        what = object_text(overlap["kind"], overlap["identity"])
        console.print(
            Text(f"    {what}: {differ}  ({overlap['source']}, position {overlap['position']})"), soft_wrap=True
        )
    if total > OVERLAP_LIMIT:
        console.print(f"    … and {total - OVERLAP_LIMIT:,} more; --output json has them", style="dim")


def show_result(
    result: RunResult, run: str, *, table: bool, fresh: str = "apply-ledger plan --config-file FILE"
) -> None:
    """The summary of a run for people, what refused it, and the next command.

    Args:
        result: what became of it.
        run: its name for the commands that are named.
        table: whether to print the summary, too, on stdout.
        fresh: the command that makes a fresh plan of the same source.
    """
    if table:
        print_run(result.document)
    for finding in result.findings:
        people.print(Text(str(finding), style="red"))
    if result.state == "applied" and result.was_over:
        people.print(f"it was applied before, at {result.document['ended_at']}; nothing was sent again")
    if result.state == "refused" and result.was_over:
        people.print("this is the result of the earlier commit; `resume` checks again, if needed with another policy")
    for command in next_commands(result, run, fresh):
        next_command(command)


def next_commands(result: RunResult, run: str, fresh: str) -> list[str]:
    """What to do next, ready to be copied; which of several is right, only a person can tell.

    Args:
        result: what became of the run.
        run: its name for the commands.
        fresh: the command that makes a fresh plan of the same source.
    """
    document = result.document
    word = word_of(document)
    if word == "running":
        return [f"apply-ledger runs show {run}   (again, for how far it is; `apply-ledger stop {run}` stops it)"]
    if word == "open" or (word in RESUMABLE and any(order["kind"] != "stop" for order in document["open_orders"])):
        return _while_it_waits(document, run)
    resume = f"apply-ledger resume {run} --reason TEXT"
    if word in ("interrupted", "stopped"):
        return [resume]
    if word == "refused" and (allowed := _allowing(result)):
        return [f"{fresh}   (review and apply that one)", f"{resume} {allowed}   (if you decide to apply this one)"]
    if word in ("failed", "refused"):
        ways = [
            f"{resume}   (if the cause was fixed outside the plan)",
            f"{fresh}   (if the plan is the cause: review and apply the fresh one)",
        ]
        return ways[::-1] if _advises_a_fresh_plan(result) else ways
    return [f"apply-ledger replay --run {document['run_id']}"]


def _while_it_waits(document: Mapping[str, Any], run: str) -> list[str]:
    if document["served"]:
        return [f"apply-ledger runs show {run}"]
    reviewed = f"--expected-checksum {document['plan_checksum']}"
    return [
        "apply-ledger work   (carries out everything that is ordered)",
        f"apply-ledger apply {run} {reviewed}   (carries out this run and what waits before it)",
    ]


def _allowing(result: RunResult) -> str:
    """The options under which a refused plan is applied after all; empty where anything else refused it."""
    names = {finding.name for finding in result.findings}
    return " ".join(ALLOWING[name] for name in sorted(names)) if names <= ALLOWING.keys() else ""


def _advises_a_fresh_plan(result: RunResult) -> bool:
    """Whether what stopped the run says itself that the plan is the cause; the words are those of this program."""
    failure = result.document["failure"]
    advice = [finding.next_action for finding in result.findings] + ([failure["next_action"]] if failure else [])
    return any("fresh plan" in text for text in advice)


def binding_line(row: BindingRow, waiting_orders: int = 0) -> Text:
    """One binding in a line: how long its record is, who writes it, what is under way, and how many orders wait."""
    parts = [f"{row.head_position:,} events"]
    if row.has_live_lease:
        parts.append(
            f"written by {row.lease_host} under epoch {row.writer_epoch}, lease for {row.lease_expires_in:.0f} s"
        )
    else:
        parts.append("no writer now")
    if row.in_flight is not None:
        mark = row.in_flight
        parts.append(f"in flight: operation {mark.ordinal:,} of run {mark.run_id}, attempt {mark.attempt}")
    if waiting_orders:
        parts.append(f"{waiting_orders:,} {'order waits' if waiting_orders == 1 else 'orders wait'}")
    if row.quiet_for > 0:
        parts.append(f"quiet for {row.quiet_for:.0f} s, until the destination has settled")
    return Text.assemble((str(row.binding), "bold"), "  " + " · ".join(parts))
