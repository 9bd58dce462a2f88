"""What a plan was made from, as ``run.json`` beside it says: no part of the plan, and not covered by its checksum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from ledger.plan.describe import SENSITIVE, SecretFields, name_text
from ledger.plan.review_page import Page
from ledger.plan.saved_plan import Resource
from ledger.printable import refusal_words


@dataclass(frozen=True, slots=True)
class EndpointCount:
    """How many rows an endpoint had, and how many of them the filters of all its entries left out."""

    read: int
    left_out: int


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """All of it is empty for a plan that was made elsewhere.

    Attributes:
        configuration: the path of the configuration file.
        location: where the source read, as it tells itself.
        overrides: source settings of the command line.
        rows: rows by endpoint, in the order in which they were read.
        warnings: what the plan maker warned about.
    """

    configuration: str | None = None
    location: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, EndpointCount] = field(default_factory=dict)
    warnings: Sequence[str] = ()

    def lines(self) -> dict[str, str]:
        """The lines of a review's header."""
        if self.configuration is None:
            return {"file": "not recorded: there is no run.json beside this plan"}
        told = {"file": name_text(self.configuration)}
        if self.location is not None:
            told["read from"] = _harmless(self.location)
        if self.overrides:
            told["overrides"] = ", ".join(f"{name}={value}" for name, value in self._shown_overrides().items())
        return told

    def record(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "configuration": self.configuration,
            "location": None if self.location is None else _harmless(self.location),
            "source_settings": self._shown_overrides(),
            "source_rows": {name: {"read": it.read, "left_out": it.left_out} for name, it in self.rows.items()},
            "warnings": [_harmless(warning) for warning in self.warnings],
        }

    def _shown_overrides(self) -> dict[str, str]:
        """A plan refuses credentials among its overrides; the file may have been written by anybody (G12)."""
        secrets = SecretFields()
        return {
            name_text(name): SENSITIVE if secrets.hides("", name) else _harmless(value)
            for name, value in self.overrides.items()
        }


def print_warnings(page: Page, origin: PlanOrigin | None) -> None:
    """What the plan maker warned about, such as a field of which no row has the column."""
    warnings = origin.warnings if origin is not None else ()
    if not warnings:
        return
    page.line(Text(f"Warnings when this plan was made ({len(warnings):,})", style="bold yellow"))
    for warning in warnings:
        page.line(Text(f"* {_harmless(warning)}"), 2)
    page.blank()


def print_rows_left_out(page: Page, origin: PlanOrigin | None, resources: Sequence[Resource], kind: str | None) -> None:
    """How many rows of the source the filters left out, by endpoint; with a kind, of its endpoints alone."""
    counts = {name: count for name, count in (origin.rows if origin is not None else {}).items() if count.left_out}
    if kind is not None:
        of_kind = {item.line.entry.name for item in resources if item.line is not None and item.line.entry is not None}
        counts = {name: count for name, count in counts.items() if name in of_kind}
    if not counts:
        return
    total = sum(count.left_out for count in counts.values())
    page.line(Text(f"Rows of the source left out by filters ({total:,})", style="bold"))
    for name, count in counts.items():
        page.line(Text(f"{count.left_out:,} of {count.read:,} rows of {name_text(name)}"), 2)
    page.blank()


def _harmless(text: str) -> str:
    return refusal_words(text)
