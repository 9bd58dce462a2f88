"""One run, printed for people: state, counts that add up to the plan, positions, what failed, what was overwritten."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from ledger.cli.output import data_console
from ledger.plan.describe import object_text
from ledger.printable import words

if TYPE_CHECKING:
    from ledger.store.ledger import BindingRow

STATE_STYLES = {
    "applied": "green",
    "open": "yellow",
    "stopped": "yellow",
    "failed": "red",
    "interrupted": "red",
    "refused": "red",
}
COUNTS = ("planned", "applied", "skipped", "failed", "unknown", "not_attempted")
OVERLAP_LIMIT = 20


def print_run(document: Mapping[str, Any]) -> None:
    """Print a run's summary document on stdout."""
    console = data_console()
    state = str(document["state"])
    console.print(
        Text.assemble(
            (f"run {document['run_id']} ", "bold"),
            (state, f"bold {STATE_STYLES[state]}"),
            f"  source {document['source']}",
        )
    )
    counts = [f"{document[name] or 0:,} {name.replace('_', ' ')}" for name in COUNTS]
    if document["operations_per_second"] is not None:
        counts.append(f"{document['operations_per_second']:,.0f} operations/s")
    console.print("  " + " · ".join(counts), soft_wrap=True)
    positions = f"ledger positions {document['committed_position']} to {document['position']}"
    console.print(f"  {positions} · plan {document['plan_checksum']}", soft_wrap=True, style="dim")
    if state == "refused" and document["started_position"] is not None:
        earlier = f"  this attempt wrote nothing; writes of earlier attempts stay: {counts[1]}"
        console.print(Text(earlier, style="yellow"), soft_wrap=True)
    if document["failed_operation"] is not None:
        proven = document["failed_operation_wrote"] is False
        wrote = "proven to have written nothing" if proven else "may have written"
        console.print(Text(f"  failed operation {document['failed_operation']}: {wrote}", style="red"))
        if document.get("failure"):
            reason = f"  {document['failure']['error']}: {document['failure']['message']}"
            console.print(Text(words(reason), style="red"), soft_wrap=True)
    if document["skipped_delete_count"]:
        skipped = f"  warning: {document['skipped_delete_count']:,} recorded deletes were not executed"
        console.print(Text(skipped, style="yellow"))
    _print_overlaps(document)


def _print_overlaps(document: Mapping[str, Any]) -> None:
    overlaps, total = document["overlaps"], document["overlaps_total"]
    if not overlaps:
        return
    console = data_console()
    console.print(Text(f"  overwrites later writes of other sources: {total:,} objects", style="yellow"))
    for overlap in overlaps[:OVERLAP_LIMIT]:
        fields = words(", ".join(overlap["fields"])) or "no field differs"
        what = object_text(overlap["kind"], overlap["identity"])
        console.print(
            Text(f"    {what}: {fields}  ({overlap['source']}, position {overlap['position']})"), soft_wrap=True
        )
    if total > OVERLAP_LIMIT:
        console.print(f"    … and {total - OVERLAP_LIMIT:,} more; --output json has them", style="dim")


def binding_line(row: BindingRow) -> Text:
    """One binding in a line: how long its record is, who writes it, and what is under way."""
    parts = [f"{row.head_position:,} events"]
    if row.has_live_lease:
        parts.append(
            f"written by {row.lease_host} under epoch {row.writer_epoch}, lease for {row.lease_expires_in:.0f} s"
        )
    else:
        parts.append("no writer now")
    if row.in_flight is not None:
        mark = row.in_flight
        parts.append(f"in flight: operation {mark.ordinal} of run {mark.run_id}, attempt {mark.attempt}")
    if row.quiet_for > 0:
        parts.append(f"quiet for {row.quiet_for:.0f} s, until the destination has settled")
    return Text.assemble((str(row.binding), "bold"), "  " + " · ".join(parts))
