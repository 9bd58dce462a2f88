"""A review for people, at two depths, on a rich console (C38, C39, H11 to H22).

Every colour has a sign as well: ``+`` create, ``~`` update, ``-`` recorded delete, ``=`` none, ``!`` skip. Nothing from
a plan is printed as markup, and no text of it reaches the terminal unescaped (:mod:`ledger.plan.describe`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from ledger.plan.canonical import object_key
from ledger.plan.coverage import COVERAGE_ACTIONS, CoverageAction
from ledger.plan.describe import (
    MAX_PARTS,
    SecretFields,
    component_text,
    identity_text,
    name_text,
    object_text,
    value_text,
)
from ledger.plan.review_changes import also_sent, change_text, field_changes
from ledger.plan.review_frame import (
    SIGNS,
    STYLES,
    print_header,
    print_notes,
    print_overlaps,
    print_problems,
    print_stale,
    print_table,
)
from ledger.plan.review_ledger import NO_LEDGER, LedgerWords
from ledger.plan.review_page import Page
from ledger.plan.saved_plan import Resource, SavedPlan
from ledger.printable import words
from ledger.schema import DestinationSchema

if TYPE_CHECKING:  # see review_frame
    pass

_EXCERPT_STYLES = {"+": "green", "-": "red", "@": "cyan"}
SUMMARY_LIMIT = 20
"""Resources of one tier, kind and action that a summary lists; the number of omitted ones is reported."""

_UNKNOWN_WRITER = "never written through this ledger"


def render_review(
    saved: SavedPlan,
    console: Console,
    *,
    detail: bool = False,
    listed: bool = True,
    kind: str | None = None,
    ledger: LedgerWords = NO_LEDGER,
    schema: DestinationSchema | None = None,
) -> None:
    """Print a plan; the last line is always the five counts of the whole plan.

    Args:
        saved: the plan.
        console: where to print; width and colours are the console's.
        detail: also the fields of each resource, and every resource.
        listed: False leaves the lists out: header, counts by tier and kind, recorded deletes.
        kind: show only resources of this kind.
        ledger: what the ledger knows beside the plan.
        schema: the destination's schema where it is known, to recognise secret fields by kind.
    """
    page = Page(console)
    secrets = SecretFields(schema)
    resources = saved.resources(kind)
    print_header(page, saved)
    print_problems(page, saved)
    print_stale(page, ledger.stale)
    print_overlaps(page, ledger.overlaps, kind)
    print_table(page, resources)
    if listed:
        _print_groups(page, resources, secrets, detail=detail)
    _print_deletes(page, resources, secrets, ledger.last_writers, detail=detail)
    print_notes(page, saved, resources, kind)
    page.last_line(Text(saved.summary.line, style="bold"))


def _print_groups(page: Page, resources: Sequence[Resource], secrets: SecretFields, *, detail: bool) -> None:
    listed = [r for r in resources if r.action != "remove" and (detail or r.action != "none")]
    ordered = sorted(listed, key=lambda r: (r.tier, r.kind, COVERAGE_ACTIONS.index(r.action), _order(r, secrets)))
    for (tier, kind), found in groupby(ordered, key=lambda r: (r.tier, r.kind)):
        group = list(found)
        origin = _common_origin(group) if detail else None
        heading = Text(f"tier {tier} · {name_text(kind)}", style="bold")
        if origin:
            heading.append(f"  {origin}", style="not bold dim")
        page.line(heading)
        for action, same in groupby(group, key=lambda r: r.action):
            _print_resources(page, list(same), secrets, action, detail=detail, origins=origin is None)
        page.blank()


def _common_origin(resources: Sequence[Resource]) -> str | None:
    """Where all of a group come from, said once; None where they come from different entries."""
    origins = {_origin(resource) for resource in resources}
    return origins.pop() if len(origins) == 1 else None


def _print_resources(
    page: Page,
    resources: Sequence[Resource],
    secrets: SecretFields,
    action: CoverageAction,
    *,
    detail: bool,
    origins: bool,
) -> None:
    shown = resources if detail else resources[:SUMMARY_LIMIT]
    for resource in shown:
        _print_resource(page, resource, secrets, fields=not detail)
        if detail:
            _print_fields(page, resource, secrets, origin=origins)
    hidden = len(resources) - len(shown)
    if hidden:
        text = f"{SIGNS[action]} … {hidden:,} more to {action}; --detail lists all"
        page.line(Text(text, style=STYLES[action]), 2)


def _print_resource(page: Page, resource: Resource, secrets: SecretFields, *, fields: bool) -> None:
    line = Text()
    line.append(f"{SIGNS[resource.action]} ", style=STYLES[resource.action])
    line.append(_name(resource, secrets), style=STYLES[resource.action])
    if resource.destination_id is not None:
        line.append(f"  id {name_text(resource.destination_id)}", style="dim")
    elif resource.action == "update":
        line.append("  id not recorded", style="dim")
    if fields and resource.line is not None and resource.line.differences:
        line.append(f"  {words(', '.join(sorted(resource.line.differences)))}")
    reason = resource.line.reason if resource.line is not None else None
    if reason:
        line.append(f"  {words(reason)}", style="italic")
    page.line(line, 2)


def _print_fields(page: Page, resource: Resource, secrets: SecretFields, *, origin: bool) -> None:
    for change in field_changes(resource):
        told = change_text(resource, change, secrets)
        text = Text()
        text.append(name_text(change.field), style="bold")
        text.append(f": {told.line}")
        page.line(text, 6)
        for excerpt in told.excerpt:
            page.line(Text(excerpt, style=_EXCERPT_STYLES.get(excerpt[:1], "")), 8)
    unchanged = also_sent(resource)
    if unchanged:
        parts = (f"{name_text(n)}={component_text(resource.kind, n, v, secrets=secrets)}" for n, v in unchanged.items())
        page.line(Text(f"also sent: {words(', '.join(parts))}", style="dim"), 6)
    if origin and resource.line is not None:
        page.line(Text(_origin(resource), style="dim"), 6)


def _origin(resource: Resource) -> str:
    """The mapping entry and filters that selected a resource, and the providers of both sides (H17, H18)."""
    line = resource.line
    if line is None:
        return ""
    providers = f"through {name_text(line.providers.source)} → {name_text(line.providers.destination)}"
    if line.entry is None:
        return providers
    filters = " and ".join(_filter(item) for item in line.filters[:MAX_PARTS])
    where = f" where {filters}" if filters else ""
    return f"from mapping entry {line.entry.index} ({name_text(line.entry.name)}){where}, {providers}"


def _filter(item: Mapping[str, Any]) -> str:
    told = f"{name_text(str(item.get('field')))} {name_text(str(item.get('operation')))}"
    return f"{told} {value_text(item['value'])}" if "value" in item else told


def _print_deletes(
    page: Page,
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
    page.line(Text(title, style="bold red"))
    ordered = sorted(deletes, key=lambda r: (_writer(r, last_writers), r.kind, _order(r, secrets)))
    for writer, group in groupby(ordered, key=lambda r: _writer(r, last_writers)):
        page.line(Text(writer, style="bold"), 2)
        same = list(group)
        shown = same if detail else same[:SUMMARY_LIMIT]
        for resource in shown:
            text = Text(f"- {object_text(resource.kind, resource.identity, secrets=secrets)}", style=STYLES["remove"])
            if resource.destination_id is not None:
                text.append(f"  id {name_text(resource.destination_id)}", style="dim")
            page.line(text, 4)
            if detail:
                _print_fields(page, resource, secrets, origin=True)
        if len(same) > len(shown):
            rest = Text(f"- … {len(same) - len(shown):,} more; --detail lists all", style=STYLES["remove"])
            page.line(rest, 4)
    page.blank()


def last_writer(resource: Resource, last_writers: Mapping[bytes, str] | None) -> str | None:
    """The source that wrote the object last, where a ledger was asked and knows one."""
    return None if last_writers is None else last_writers.get(object_key(resource.kind, resource.identity))


def _writer(resource: Resource, last_writers: Mapping[bytes, str] | None) -> str:
    if last_writers is None:
        return "last writer not looked up"
    found = last_writer(resource, last_writers)
    return _UNKNOWN_WRITER if found is None else f"last written by {name_text(found)}"


def _order(resource: Resource, secrets: SecretFields) -> tuple[tuple[int, int, str], ...]:
    """People expect ``port2`` before ``port10``."""
    parts = re.split(r"([0-9]{1,18})", _name(resource, secrets))
    return tuple((1, int(part), "") if part.isascii() and part.isdigit() else (0, 0, part) for part in parts)


def _name(resource: Resource, secrets: SecretFields) -> str:
    return identity_text(resource.kind, resource.identity, secrets=secrets)
