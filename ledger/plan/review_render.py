"""A review for people, at two depths, on a rich console (C38, C39, H11 to H22).

Signs stand beside every colour: ``+`` create, ``~`` update, ``-`` recorded delete, ``=`` none, ``!`` skip. Nothing from
a plan is printed as markup, and no text of it reaches the terminal unescaped (:mod:`ledger.plan.describe`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ledger.plan.canonical import object_key
from ledger.plan.coverage import COVERAGE_ACTIONS, CoverageAction
from ledger.plan.describe import SecretFields, identity_text, object_text, visible
from ledger.plan.model import APPLICABLE_FORMATS
from ledger.plan.review_changes import change_text, field_changes
from ledger.plan.saved_plan import Resource, SavedPlan, counts_line
from ledger.schema import DestinationSchema

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
_EXCERPT_STYLES = {"+": "green", "-": "red", "@": "cyan"}
SUMMARY_LIMIT = 20
"""Resources of one tier, kind and action that a summary lists; how many it leaves out is said."""

_UNKNOWN_WRITER = "never written through this ledger"


def render_review(
    saved: SavedPlan,
    console: Console,
    *,
    detail: bool = False,
    kind: str | None = None,
    last_writers: Mapping[bytes, str] | None = None,
    overlaps: Sequence[Overlap] = (),
    schema: DestinationSchema | None = None,
) -> None:
    """Print a plan; the last line is always the five counts of the whole plan.

    Args:
        saved: the plan.
        console: where to print; width and colours are the console's.
        detail: also the fields of each resource, and every resource.
        kind: show only resources of this kind.
        last_writers: object key to the source that wrote it last; None where no ledger was asked.
        overlaps: what other sources applied to the same objects since the plan was made.
        schema: the destination's schema where it is known, to recognise secret fields by kind.
    """
    secrets = SecretFields(schema)
    resources = saved.resources(kind)
    _print_header(console, saved)
    _print_problems(console, saved)
    _print_overlaps(console, overlaps, kind)
    _print_table(console, resources)
    _print_groups(console, resources, secrets, detail=detail)
    _print_deletes(console, resources, secrets, last_writers, detail=detail)
    _print_notes(console, saved, resources, kind)
    console.print(Text(saved.summary.line, style="bold"), soft_wrap=True)


def _print_header(console: Console, saved: SavedPlan) -> None:
    manifest, summary = saved.manifest, saved.summary
    binding = manifest.destination_binding
    rows = {
        "source": visible(manifest.source) if manifest.source else "not recorded",
        "destination": visible(str(binding)) if binding else "not recorded (an older plan)",
        "run": visible(manifest.run_id),
        "made": visible(manifest.created_at),
        "configuration": visible(manifest.config_version),
        "checksum": manifest.plan_checksum,
        "format": f"{manifest.format_version}{_format_note(manifest.format_version)}",
        "operations": f"{summary.operations_count:,} in {summary.tiers:,} tier{'' if summary.tiers == 1 else 's'}",
    }
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows.items():
        grid.add_row(Text(name), Text(value))
    console.print(Text("Plan", style="bold"))
    console.print(Padding(grid, (0, 0, 1, 2)))


def _format_note(version: int) -> str:
    if version in APPLICABLE_FORMATS:
        return ""
    return " (for review only: its updates record no destination id; make a fresh plan to apply)"


def _print_problems(console: Console, saved: SavedPlan) -> None:
    if not saved.problems:
        return
    console.print(Text("This plan will be refused: its files do not agree", style="bold red"))
    for finding in saved.problems:
        console.print(Padding(Text(f"!! {visible(str(finding))}", style="red"), (0, 0, 0, 2)))
    console.print()


def _print_overlaps(console: Console, overlaps: Sequence[Overlap], kind: str | None) -> None:
    shown = [overlap for overlap in overlaps if kind is None or overlap.kind == kind]
    if not shown:
        return
    title = f"Also written by other sources since this plan was made ({len(shown):,})"
    console.print(Text(title, style="bold yellow"))
    for overlap in shown:
        what = object_text(overlap.kind, overlap.identity)
        by = f"by {visible(overlap.source)}, run {visible(overlap.run_id)}, position {overlap.position:,}"
        fields = visible(", ".join(overlap.fields)) or "no common field"
        console.print(Padding(Text(f"* {what} {by}: {fields}"), (0, 0, 0, 2)))
    console.print()


def _print_table(console: Console, resources: Sequence[Resource]) -> None:
    if not resources:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("tier", justify="right")
    table.add_column("kind", overflow="fold")
    for action in COVERAGE_ACTIONS:
        table.add_column(f"{SIGNS[action]} {action}", justify="right", header_style=f"bold {STYLES[action]}")
    found = Counter((resource.tier, resource.kind, resource.action) for resource in resources)
    for tier, kind in sorted({(tier, kind) for tier, kind, _ in found}):
        figures = [found[tier, kind, action] for action in COVERAGE_ACTIONS]
        cells = [
            Text(f"{n:,}", style=STYLES[a] if n else "dim") for a, n in zip(COVERAGE_ACTIONS, figures, strict=True)
        ]
        table.add_row(Text(str(tier)), Text(visible(kind)), *cells)
    console.print(Padding(table, (0, 0, 1, 2)))


def _print_groups(console: Console, resources: Sequence[Resource], secrets: SecretFields, *, detail: bool) -> None:
    listed = [r for r in resources if r.action != "remove" and (detail or r.action != "none")]
    ordered = sorted(listed, key=lambda r: (r.tier, r.kind, COVERAGE_ACTIONS.index(r.action), _name(r, secrets)))
    for (tier, kind), group in groupby(ordered, key=lambda r: (r.tier, r.kind)):
        console.print(Text(f"tier {tier} · {visible(kind)}", style="bold"))
        for action, same in groupby(group, key=lambda r: r.action):
            _print_resources(console, list(same), secrets, action, detail=detail)
        console.print()


def _print_resources(
    console: Console, resources: Sequence[Resource], secrets: SecretFields, action: CoverageAction, *, detail: bool
) -> None:
    shown = resources if detail else resources[:SUMMARY_LIMIT]
    for resource in shown:
        _print_resource(console, resource, secrets, detail=detail)
    hidden = len(resources) - len(shown)
    if hidden:
        text = f"{SIGNS[action]} … {hidden:,} more to {action}; --detail lists all"
        console.print(Padding(Text(text, style=STYLES[action]), (0, 0, 0, 2)))


def _print_resource(console: Console, resource: Resource, secrets: SecretFields, *, detail: bool) -> None:
    line = Text()
    line.append(f"{SIGNS[resource.action]} ", style=STYLES[resource.action])
    line.append(_name(resource, secrets), style=STYLES[resource.action])
    if resource.destination_id is not None:
        line.append(f"  id {visible(resource.destination_id)}", style="dim")
    elif resource.action == "update":
        line.append("  id not recorded", style="dim")
    reason = resource.line.reason if resource.line is not None else None
    if reason:
        line.append(f"  {visible(reason)}", style="italic")
    console.print(Padding(line, (0, 0, 0, 2)))
    if detail:
        _print_fields(console, resource, secrets)


def _print_fields(console: Console, resource: Resource, secrets: SecretFields) -> None:
    for change in field_changes(resource):
        told = change_text(resource, change, secrets)
        text = Text()
        text.append(visible(change.field), style="bold")
        text.append(f": {told.line}")
        console.print(Padding(text, (0, 0, 0, 6)))
        for excerpt in told.excerpt:
            console.print(Padding(Text(excerpt, style=_EXCERPT_STYLES.get(excerpt[:1], "")), (0, 0, 0, 8)))
    if resource.line is not None and resource.action != "none":
        console.print(Padding(Text(_origin(resource), style="dim"), (0, 0, 0, 6)))


def _origin(resource: Resource) -> str:
    line = resource.line
    if line is None:
        return ""
    entry = "" if line.entry is None else f"mapping entry {line.entry.index} ({visible(line.entry.name)})"
    filters = f", {len(line.filters)} filter{'' if len(line.filters) == 1 else 's'}" if line.filters else ""
    providers = f"{visible(line.providers.source)} → {visible(line.providers.destination)}"
    return ", ".join(part for part in (f"from {entry}{filters}" if entry else "", f"through {providers}") if part)


def _print_deletes(
    console: Console,
    resources: Iterable[Resource],
    secrets: SecretFields,
    last_writers: Mapping[bytes, str] | None,
    *,
    detail: bool,
) -> None:
    deletes = [resource for resource in resources if resource.action == "remove"]
    if not deletes:
        return
    title = f"Deletes ({len(deletes):,}): recorded, not executed; an apply leaves these objects alone"
    console.print(Text(title, style="bold red"))
    ordered = sorted(deletes, key=lambda r: (_writer(r, last_writers), r.kind, _name(r, secrets)))
    for writer, group in groupby(ordered, key=lambda r: _writer(r, last_writers)):
        console.print(Padding(Text(writer, style="bold"), (0, 0, 0, 2)))
        same = list(group)
        shown = same if detail else same[:SUMMARY_LIMIT]
        for resource in shown:
            text = Text(f"- {object_text(resource.kind, resource.identity, secrets=secrets)}", style=STYLES["remove"])
            if resource.destination_id is not None:
                text.append(f"  id {visible(resource.destination_id)}", style="dim")
            console.print(Padding(text, (0, 0, 0, 4)))
            if detail:
                _print_fields(console, resource, secrets)
        if len(same) > len(shown):
            rest = Text(f"- … {len(same) - len(shown):,} more; --detail lists all", style=STYLES["remove"])
            console.print(Padding(rest, (0, 0, 0, 4)))
    console.print()


def last_writer(resource: Resource, last_writers: Mapping[bytes, str] | None) -> str | None:
    """The source that wrote the object last, where a ledger was asked and knows one."""
    return None if last_writers is None else last_writers.get(object_key(resource.kind, resource.identity))


def _writer(resource: Resource, last_writers: Mapping[bytes, str] | None) -> str:
    if last_writers is None:
        return "last writer not looked up"
    found = last_writer(resource, last_writers)
    return _UNKNOWN_WRITER if found is None else f"last written by {visible(found)}"


def _print_notes(console: Console, saved: SavedPlan, resources: Sequence[Resource], kind: str | None) -> None:
    summary = saved.summary
    notes = []
    if not summary.delete_operations_computed:
        notes.append(
            "Deletes were not computed: the destination was not read in full, so this plan says nothing about objects "
            "that exist only there."
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
        console.print(Text(note))


def _filter_note(saved: SavedPlan, resources: Sequence[Resource], kind: str) -> str:
    if not resources:
        kinds = ", ".join(sorted({resource.kind for resource in saved.resources()})) or "none"
        return f"No resource of kind {visible(kind)} in this plan; its kinds: {visible(kinds)}."
    actions = [resource.action for resource in resources]
    found = counts_line({action: actions.count(action) for action in COVERAGE_ACTIONS})
    return f"Shown: {visible(kind)} alone ({found}). The whole plan:"


def _name(resource: Resource, secrets: SecretFields) -> str:
    return identity_text(resource.kind, resource.identity, secrets=secrets)
