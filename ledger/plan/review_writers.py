"""What a review says about who wrote an object last, through this ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.text import Text

from ledger.plan.canonical import object_key
from ledger.plan.describe import name_text
from ledger.plan.review_ledger import LastWriter, LedgerWords
from ledger.plan.review_page import Page
from ledger.plan.saved_plan import Resource

UNKNOWN_WRITER = "never written through this ledger"
_WHAT = {
    "update": ("update changes an object", "updates change objects"),
    "create": ("create is of an object", "creates are of objects"),
}


def last_writer(resource: Resource, ledger: LedgerWords) -> LastWriter | None:
    """Who wrote the object last, where a ledger was asked and knows it."""
    if ledger.last_writers is None:
        return None
    return ledger.last_writers.get(object_key(resource.kind, resource.identity))


def foreign_writer(resource: Resource, ledger: LedgerWords, source: str | None) -> LastWriter | None:
    """The same where the plan would write the object and its last writer is another source than the plan's."""
    if resource.action not in ("create", "update"):
        return None
    found = last_writer(resource, ledger)
    return None if found is None or found.source == source else found


def writer_of_delete(resource: Resource, ledger: LedgerWords) -> str:
    """The heading below which a recorded delete stands."""
    if ledger.last_writers is None:
        return "last writer not looked up"
    found = last_writer(resource, ledger)
    return UNKNOWN_WRITER if found is None else f"last written by {name_text(found.source)}"


def print_foreign_writers(page: Page, resources: Sequence[Resource], ledger: LedgerWords, source: str | None) -> None:
    """How many objects of other sources the plan would write, by source."""
    found = Counter(
        (resource.action, writer.source)
        for resource in resources
        if (writer := foreign_writer(resource, ledger, source)) is not None
    )
    for action in ("update", "create"):
        sources = {name: count for (did, name), count in sorted(found.items()) if did == action}
        total = sum(sources.values())
        if total:
            one, several = _WHAT[action]
            by = ", ".join(f"{name_text(name)} {count:,}" for name, count in sources.items())
            what = one if total == 1 else several
            page.line(Text(f"{total:,} {what} that another source wrote last: {by}", style="bold yellow"))
    if found:
        page.blank()
