"""The frame of a printed review: header, problems, overlaps, table, notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from ledger.errors import Finding
from ledger.plan.coverage import COVERAGE_ACTIONS, CoverageAction
from ledger.plan.describe import name_text, object_text
from ledger.plan.model import APPLICABLE_FORMATS
from ledger.plan.review_origin import PlanOrigin
from ledger.plan.review_page import Page
from ledger.plan.saved_plan import PlanSummary, Resource, SavedPlan, counts_line
from ledger.printable import words

if TYPE_CHECKING:  # ledger.events needs ledger.plan, so that it cannot be imported from here while both load
    from ledger.events import Overlap

SIGNS: Mapping[CoverageAction, str] = {"create": "+", "update": "~", "remove": "-", "none": "=", "skip": "!"}
STYLES: Mapping[CoverageAction, str] = {
    "create": "green",
    "update": "yellow",
    "remove": "red",
    "none": "bright_black",
    "skip": "magenta",
}


def print_header(page: Page, saved: SavedPlan, origin: PlanOrigin | None) -> None:
    """Who plans what from where for which destination, under which checksum (H20)."""
    manifest, summary = saved.manifest, saved.summary
    binding = manifest.destination_binding
    rows = {
        "source": name_text(manifest.source) if manifest.source else "not recorded",
        **(origin.lines() if origin is not None else {}),
        "destination": name_text(str(binding)) if binding else "not recorded (an older plan)",
        "run": name_text(manifest.run_id),
        "made": name_text(manifest.created_at),
        "config": name_text(manifest.config_version),
        "checksum": manifest.plan_checksum,
        "format": f"{manifest.format_version}{_format_note(manifest.format_version)}",
        "operations": _operations(summary),
    }
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(Text(name), Text(value))
    page.line(Text("Plan", style="bold"))
    page.block(grid, 2)


def _operations(summary: PlanSummary) -> str:
    deletes = summary.counts["remove"]
    told = f"{summary.operations_count:,} in {summary.tiers:,} tier{'' if summary.tiers == 1 else 's'}"
    if not deletes:
        return told
    written = summary.operations_count - deletes
    return f"{told}: {written:,} to write, {deletes:,} recorded delete{'' if deletes == 1 else 's'} (never executed)"


def _format_note(version: int) -> str:
    if version in APPLICABLE_FORMATS:
        return ""
    return " (for review only: its updates record no destination id; make a fresh plan to apply)"


def print_problems(page: Page, saved: SavedPlan) -> None:
    """What the gate would refuse about these files; nothing where they agree."""
    if not saved.problems:
        return
    page.line(Text("This plan will be refused: its files contradict each other", style="bold red"))
    for finding in saved.problems:
        page.line(Text(f"!! {finding}", style="red"), 2)
    page.blank()


def print_stale(page: Page, findings: Sequence[Finding]) -> None:
    """That the same source has applied a newer plan since, which the gate refuses (design 7.7)."""
    if not findings:
        return
    page.line(Text("This plan is stale: `apply` refuses it (exit code 6)", style="bold yellow"))
    for finding in findings:
        page.line(Text(f"!! {finding}", style="yellow"), 2)
    page.blank()


def print_overlaps(page: Page, overlaps: Sequence[Overlap], kind: str | None) -> None:
    """Objects that another source wrote since the plan was made (design 7.9)."""
    shown = [overlap for overlap in overlaps if kind is None or overlap.kind == kind]
    if not shown:
        return
    title = f"Also written by other sources since this plan was made ({len(shown):,})"
    page.line(Text(title, style="bold yellow"))
    for overlap in shown:
        what = object_text(overlap.kind, overlap.identity)
        by = f"by {name_text(overlap.source)}, run {name_text(overlap.run_id)}, position {overlap.position:,}"
        fields = words(", ".join(overlap.fields))
        differ = f"the values differ in {fields}" if fields else "no value differs"
        page.line(Text(f"* {what} {by}: {differ}"), 2)
    page.blank()


def print_table(page: Page, resources: Sequence[Resource]) -> None:
    """How much of each kind, all five actions, and the tiers in which it is."""
    if not resources:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("kind", overflow="fold")
    table.add_column("tiers", justify="right", no_wrap=True)
    for action in COVERAGE_ACTIONS:
        table.add_column(f"{SIGNS[action]} {action}", justify="right", header_style=f"bold {STYLES[action]}")
    found = Counter((resource.kind, resource.action) for resource in resources)
    tiers: dict[str, set[int]] = {}
    for resource in resources:
        tiers.setdefault(resource.kind, set()).add(resource.tier)
    for kind in sorted(tiers):
        figures = [found[kind, action] for action in COVERAGE_ACTIONS]
        cells = [
            Text(f"{n:,}", style=STYLES[a] if n else "dim") for a, n in zip(COVERAGE_ACTIONS, figures, strict=True)
        ]
        table.add_row(Text(name_text(kind)), Text(_tiers(tiers[kind])), *cells)
    page.block(table, 2)


def _tiers(tiers: set[int]) -> str:
    first, last = min(tiers), max(tiers)
    return str(first) if first == last else f"{first}-{last}"


def print_notes(page: Page, saved: SavedPlan, resources: Sequence[Resource], kind: str | None) -> None:
    """In words: deletes computed or not (C39), coverage recorded or not, nothing to do, what a filter shows."""
    summary = saved.summary
    notes = []
    if not summary.delete_operations_computed:
        notes.append(
            "Deletes were not computed (diffsync_flags SKIP_UNMATCHED_DST, or another program): this plan says nothing "
            "about objects that exist only at the destination."
        )
    elif not summary.counts["remove"]:
        notes.append("Deletes were computed: no object exists only at the destination.")
    if not summary.coverage_recorded:
        notes.append("Coverage not recorded: how many resources were unchanged or skipped is not known.")
    if summary.in_line:
        notes.append("Nothing to write: an apply of this plan changes nothing.")
    if kind is not None:
        notes.append(_filter_note(saved, resources, kind))
    for note in notes:
        page.line(Text(note))


def _filter_note(saved: SavedPlan, resources: Sequence[Resource], kind: str) -> str:
    if not resources:
        return (
            f"No resource of kind {name_text(kind)} in this plan; its kinds: {words(', '.join(saved.kinds)) or 'none'}."
        )
    actions = [resource.action for resource in resources]
    found = counts_line({action: actions.count(action) for action in COVERAGE_ACTIONS})
    return f"Shown: {name_text(kind)} alone ({found}). The whole plan:"
