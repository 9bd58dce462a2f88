"""A rehearsal, printed for people or written for programs: what each operation would do, and the counts at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from ledger.cli.output import OutputForm, data_console, write_document, write_record_line, write_stream_head
from ledger.plan.describe import SecretFields, object_text, value_text
from ledger.plan.review_changes import masked_identity
from ledger.plan.review_page import Page
from ledger.printable import words

if TYPE_CHECKING:
    from consumers.rehearsal import Effect, RehearsalSummary
    from ledger.schema import DestinationSchema

DOCUMENT = "apply-ledger.rehearsal"
DOCUMENT_VERSION = 1
STREAM = "rehearsal"
REFUSED_SHOWN = 20
"""Refused operations that the printed form names; all are in the others."""

SIGNS = {"created": "+", "updated": "~", "unchanged": "=", "refused": "x", "skipped": "-"}
STYLES = {"created": "green", "updated": "yellow", "unchanged": "bright_black", "refused": "red", "skipped": "magenta"}


def effect_record(effect: Effect, secrets: SecretFields) -> dict[str, Any]:
    """One operation for a program. An id is given only where it is the real destination's."""
    operation = effect.operation
    record: dict[str, Any] = {
        "operation_id": operation.operation_id,
        "action": operation.action,
        "kind": operation.kind,
        "identity": masked_identity(operation.kind, operation.identity, secrets),
        "outcome": effect.outcome,
        "destination_id": operation.destination_id if effect.outcome == "created" else effect.node_id,
        "fields": [field.record() for field in effect.fields],
        "recorded_as": effect.recorded_as,
        "after_stop": effect.after_stop,
    }
    if effect.refusal is not None:
        record |= {"refusal": effect.refusal.model_dump(), "follows": effect.follows}
    return record


class Told:
    """Takes effects as they come and shows them in the form asked for; :meth:`end` writes what is at the end."""

    def __init__(
        self, form: OutputForm, *, kind: str | None, detail: bool, head: Mapping[str, Any], schema: DestinationSchema
    ) -> None:
        """``kind`` limits what is listed, never what is counted. ``head`` is what is known before the first effect."""
        self._form = form
        self._kind = kind
        self._detail = detail
        self._head = head
        self._secrets = SecretFields(schema)
        self._records: list[dict[str, Any]] = []
        self._refused: list[Effect] = []
        self._by_kind: dict[str, Counter[str]] = {}
        self._page = Page(data_console()) if form is OutputForm.TABLE else None
        if self._page is not None:
            self._print_head(self._page)
        elif form is OutputForm.NDJSON:
            write_stream_head(STREAM)
            write_record_line({"record": "rehearsal", **head})

    @property
    def streams(self) -> bool:
        """Whether effects are written as they come."""
        return self._form is OutputForm.NDJSON or (self._page is not None and self._detail)

    def take(self, effect: Effect) -> None:
        """Show or keep one effect."""
        counts = self._by_kind.setdefault(effect.operation.kind, Counter())
        counts[effect.outcome] += 1
        if self._kind is not None and effect.operation.kind != self._kind:
            return
        if self._form is OutputForm.NDJSON:
            write_record_line({"record": "effect", **effect_record(effect, self._secrets)})
        elif self._form is OutputForm.JSON:
            self._records.append(effect_record(effect, self._secrets))
        elif self._page is not None and self._detail:
            self._print_effect(self._page, effect)
        elif effect.outcome == "refused" and len(self._refused) < REFUSED_SHOWN:
            self._refused.append(effect)

    def end(self, summary: RehearsalSummary, notes: Sequence[str]) -> None:
        """The counts, and whatever limits what they say."""
        told = {
            "operations": summary.operations,
            "counts": summary.counts,
            "stopped_at": summary.stopped_at,
            "reached": summary.reached,
            "notes": list(notes),
        }
        if self._page is not None:
            self._print_end(self._page, summary, notes)
        elif self._form is OutputForm.NDJSON:
            write_record_line({"record": "summary", **told})
        else:
            head = {"document": DOCUMENT, "version": DOCUMENT_VERSION, **self._head}
            write_document({**head, **told, "effects": self._records})

    def _print_head(self, page: Page) -> None:
        observed = self._head["observed"]
        url, branch = self._head["destination_binding"]["url"], self._head["destination_binding"]["branch"]
        page.line(Text(f"Rehearsal of {self._head['run']} for {words(url)} [{words(branch)}]", style="bold"))
        kinds = "1 kind" if observed["kinds"] == 1 else f"{observed['kinds']:,} kinds"
        objects = "1 object" if observed["objects"] == 1 else f"{observed['objects']:,} objects"
        page.line(Text(f"begins with {objects} of {kinds}, {observed['from']}", style="dim"), 2)
        page.line(Text(f"schema {self._head['schema']['from']}", style="dim"), 2)
        page.blank()
        page.flush()

    def _print_effect(self, page: Page, effect: Effect) -> None:
        operation, style = effect.operation, STYLES[effect.outcome]
        what = object_text(operation.kind, operation.identity, secrets=self._secrets)
        line = Text.assemble((f"{SIGNS[effect.outcome]} {effect.outcome:<9} ", style), what)
        if effect.outcome in ("updated", "unchanged") and operation.action == "create":
            line.append("  a create of an object that already exists", style="yellow")
        if effect.after_stop:
            line.append("  (after the stop)", style="dim")
        page.line(line)
        for field in effect.fields:
            if effect.outcome == "created" and field.after in (None, []):
                continue  # what a new object does not have is in the other forms
            before = f"{_text(field.before)} → " if field.has_before else ""
            page.line(Text(f"{words(field.field)}: {before}{_text(field.after)}"), 4)
        if effect.refusal is not None:
            self._print_refusal(page, effect)

    def _print_refusal(self, page: Page, effect: Effect) -> None:
        if effect.refusal is None:
            return
        page.line(Text(f"{effect.refusal.name}: {effect.refusal.found}", style="red"), 4)
        if effect.follows is not None:
            page.line(Text(f"because {effect.follows} is refused, which it refers to", style="dim"), 4)
        else:
            page.line(Text.assemble(("next: ", "dim"), effect.refusal.next_action), 4)

    def _print_end(self, page: Page, summary: RehearsalSummary, notes: Sequence[str]) -> None:
        if self._detail:
            page.blank()
        shown = {kind: counts for kind, counts in self._by_kind.items() if self._kind in (None, kind)}
        if shown:
            page.block(_table(shown), 0)
        for effect in self._refused:
            self._print_effect(page, effect)
        hidden = summary.counts["refused"] - len(self._refused)
        if self._refused and hidden > 0 and self._kind is None:
            page.line(Text(f"… and {hidden:,} more are refused; --output ndjson has all", style="dim"))
        if self._refused:
            page.blank()
        for note in notes:
            page.line(Text(f"note: {note}", style="yellow"))
        page.line(_verdict(summary))
        page.last_line(Text(" · ".join(f"{count:,} {outcome}" for outcome, count in summary.counts.items()), "bold"))


def _table(by_kind: Mapping[str, Counter[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("kind", overflow="fold")
    for outcome in SIGNS:
        table.add_column(outcome, justify="right")
    for kind, counts in sorted(by_kind.items()):
        cells = (Text(f"{counts[o]:,}" if counts[o] else "·", style=STYLES[o] if counts[o] else "dim") for o in SIGNS)
        table.add_row(Text(words(kind)), *cells)
    return table


def _verdict(summary: RehearsalSummary) -> Text:
    if summary.stopped_at is None:
        return Text("an apply would carry out every operation", style="green")
    left = summary.operations - summary.reached
    said = f"an apply would stop at {summary.stopped_at}, operation {summary.reached:,} of {summary.operations:,}; "
    return Text(f"{said}{left:,} would not be attempted", style="red")


def _text(value: Any) -> str:
    """A value, or a peer by its human-friendly id."""
    if isinstance(value, dict) and "hfid" in value and "kind" in value:
        name = value["hfid"] or [value.get("id", "")]
        return f"{words(value['kind'])}({words(', '.join(name))})"
    if isinstance(value, list) and value and all(isinstance(item, dict) and "hfid" in item for item in value):
        return f"[{', '.join(_text(item) for item in value)}]"
    return value_text(value)
