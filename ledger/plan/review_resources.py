"""The lists of a printed review: resources by tier, kind and action, and the recorded deletes by their last writer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.text import Text

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
from ledger.plan.review_frame import SIGNS, STYLES
from ledger.plan.review_ledger import LedgerWords
from ledger.plan.review_page import Page
from ledger.plan.review_writers import foreign_writer, last_writer, writer_of_delete
from ledger.plan.saved_plan import Resource
from ledger.printable import words

_EXCERPT_STYLES = {"+": "green", "-": "red", "@": "cyan"}
SUMMARY_LIMIT = 20
"""Resources of one tier, kind and action that a summary lists; the number of omitted ones is reported."""


class ResourceLists:
    """Prints the resources of one plan."""

    def __init__(
        self, page: Page, secrets: SecretFields, ledger: LedgerWords, source: str | None, *, detail: bool
    ) -> None:
        """``source`` is the plan's; ``detail`` lists every resource with its fields."""
        self._page = page
        self._secrets = secrets
        self._ledger = ledger
        self._source = source
        self._detail = detail

    def print_groups(self, resources: Iterable[Resource]) -> None:
        """Everything but the recorded deletes, in the order of writing; what is unchanged in detail only."""
        listed = [r for r in resources if r.action != "remove" and (self._detail or r.action != "none")]
        ordered = sorted(listed, key=lambda r: (r.tier, r.kind, COVERAGE_ACTIONS.index(r.action), self._order(r)))
        for (tier, kind), found in groupby(ordered, key=lambda r: (r.tier, r.kind)):
            group = list(found)
            origin = _common_origin(group) if self._detail else None
            heading = Text(f"tier {tier} · {name_text(kind)}", style="bold")
            if origin:
                heading.append(f"  {origin}", style="not bold dim")
            self._page.line(heading)
            for action, same in groupby(group, key=lambda r: r.action):
                self._print_resources(list(same), action, origins=origin is None)
            self._page.blank()

    def print_deletes(self, resources: Iterable[Resource]) -> None:
        """The recorded deletes, by the source that wrote the object last.

        Every object that only another source has is one of them, with each plan again. So those are no more than
        counted unless every resource is asked for.
        """
        deletes = [resource for resource in resources if resource.action == "remove"]
        if not deletes:
            return
        title = f"Deletes ({len(deletes):,}): recorded, not executed; an apply leaves these objects alone"
        self._page.line(Text(title, style="bold red"))
        ordered = sorted(deletes, key=lambda r: (writer_of_delete(r, self._ledger), r.kind, self._order(r)))
        for writer, group in groupby(ordered, key=lambda r: writer_of_delete(r, self._ledger)):
            same = list(group)
            last = last_writer(same[0], self._ledger)
            if last is not None and last.source != self._source and not self._detail:
                self._count_deletes(writer, same)
            else:
                self._list_deletes(writer, same)
        self._page.blank()

    def _count_deletes(self, writer: str, deletes: Sequence[Resource]) -> None:
        kinds = Counter(resource.kind for resource in deletes)
        counted = ", ".join(f"{name_text(kind)} {count:,}" for kind, count in kinds.items())
        line = Text.assemble((writer, "bold"), f": {counted}", ("; --detail lists them", "dim"))
        self._page.line(line, 2)

    def _list_deletes(self, writer: str, deletes: Sequence[Resource]) -> None:
        self._page.line(Text(writer, style="bold"), 2)
        shown = deletes if self._detail else deletes[:SUMMARY_LIMIT]
        for resource in shown:
            name = object_text(resource.kind, resource.identity, secrets=self._secrets)
            text = Text(f"- {name}", style=STYLES["remove"])
            if resource.destination_id is not None:
                text.append(f"  id {name_text(resource.destination_id)}", style="dim")
            self._page.line(text, 4)
            if self._detail:
                self._print_fields(resource, origin=True)
        if len(deletes) > len(shown):
            rest = Text(f"- … {len(deletes) - len(shown):,} more; --detail lists all", style=STYLES["remove"])
            self._page.line(rest, 4)

    def _print_resources(self, resources: Sequence[Resource], action: CoverageAction, *, origins: bool) -> None:
        shown = resources if self._detail else resources[:SUMMARY_LIMIT]
        for resource in shown:
            self._print_resource(resource)
            if self._detail:
                self._print_fields(resource, origin=origins)
        hidden = len(resources) - len(shown)
        if hidden:
            text = f"{SIGNS[action]} … {hidden:,} more to {action}; --detail lists all"
            self._page.line(Text(text, style=STYLES[action]), 2)

    def _print_resource(self, resource: Resource) -> None:
        line = Text()
        line.append(f"{SIGNS[resource.action]} ", style=STYLES[resource.action])
        line.append(self._name(resource), style=STYLES[resource.action])
        if resource.destination_id is not None:
            line.append(f"  id {name_text(resource.destination_id)}", style="dim")
        elif resource.action == "update":
            line.append("  id not recorded", style="dim")
        if not self._detail and resource.line is not None and resource.line.differences:
            line.append(f"  {words(', '.join(sorted(resource.line.differences)))}")
        reason = resource.line.reason if resource.line is not None else None
        if reason:
            line.append(f"  {words(reason)}", style="italic")
        writer = foreign_writer(resource, self._ledger, self._source)
        if writer is not None and not self._detail:
            line.append(f"  last written by {name_text(writer.source)}", style="yellow")
        self._page.line(line, 2)
        if writer is not None and self._detail:
            where = f"run {name_text(writer.run_id)}, position {writer.position:,}"
            self._page.line(Text(f"last written by {name_text(writer.source)}, {where}", style="yellow"), 6)

    def _print_fields(self, resource: Resource, *, origin: bool) -> None:
        for change in field_changes(resource):
            told = change_text(resource, change, self._secrets)
            self._page.line(Text.assemble((name_text(change.field), "bold"), f": {told.line}"), 6)
            for excerpt in told.excerpt:
                self._page.line(Text(excerpt, style=_EXCERPT_STYLES.get(excerpt[:1], "")), 8)
        unchanged = also_sent(resource)
        if unchanged:
            kind, secrets = resource.kind, self._secrets
            parts = (f"{name_text(n)}={component_text(kind, n, v, secrets=secrets)}" for n, v in unchanged.items())
            self._page.line(Text(f"also sent: {words(', '.join(parts))}", style="dim"), 6)
        if origin and resource.line is not None:
            self._page.line(Text(_origin(resource), style="dim"), 6)

    def _order(self, resource: Resource) -> tuple[tuple[int, int, str], ...]:
        """People expect ``port2`` before ``port10``."""
        parts = re.split(r"([0-9]{1,18})", self._name(resource))
        return tuple((1, int(part), "") if part.isascii() and part.isdigit() else (0, 0, part) for part in parts)

    def _name(self, resource: Resource) -> str:
        return identity_text(resource.kind, resource.identity, secrets=self._secrets)


def _common_origin(resources: Sequence[Resource]) -> str | None:
    """Where all of a group come from, said once; None where they come from different entries."""
    origins = {_origin(resource) for resource in resources}
    return origins.pop() if len(origins) == 1 else None


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
