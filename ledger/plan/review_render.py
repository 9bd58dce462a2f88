"""A review for people, at two depths, on a rich console (C38, C39, H11 to H22).

Every colour has a sign as well: ``+`` create, ``~`` update, ``-`` recorded delete, ``=`` none, ``!`` skip. Nothing from
a plan is printed as markup, and no text of it reaches the terminal unescaped (:mod:`ledger.plan.describe`).
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from ledger.plan.describe import SecretFields
from ledger.plan.review_frame import (
    print_header,
    print_notes,
    print_overlaps,
    print_problems,
    print_stale,
    print_table,
)
from ledger.plan.review_ledger import NO_LEDGER, LedgerWords
from ledger.plan.review_origin import PlanOrigin, print_rows_left_out, print_warnings
from ledger.plan.review_page import Page
from ledger.plan.review_resources import ResourceLists
from ledger.plan.review_writers import print_foreign_writers
from ledger.plan.saved_plan import SavedPlan
from ledger.schema import DestinationSchema


def render_review(
    saved: SavedPlan,
    console: Console,
    *,
    detail: bool = False,
    listed: bool = True,
    kind: str | None = None,
    ledger: LedgerWords = NO_LEDGER,
    origin: PlanOrigin | None = None,
    schema: DestinationSchema | None = None,
) -> None:
    """Print a plan; the last line is always the five counts of the whole plan.

    Args:
        saved: the plan.
        console: where to print; width and colours are the console's.
        detail: also the fields of each resource, and every resource.
        listed: False leaves the lists out: header, counts by kind, recorded deletes.
        kind: show only resources of this kind.
        ledger: what the ledger knows beside the plan.
        origin: what the plan was made from; None leaves it out.
        schema: the destination's schema where it is known, to recognise secret fields by kind.
    """
    page = Page(console)
    resources = saved.resources(kind)
    print_header(page, saved, origin)
    print_problems(page, saved)
    print_stale(page, ledger.stale)
    print_warnings(page, origin)
    print_overlaps(page, ledger.overlaps, kind)
    print_table(page, resources)
    print_rows_left_out(page, origin, resources, kind)
    print_foreign_writers(page, resources, ledger, saved.manifest.source)
    lists = ResourceLists(page, SecretFields(schema), ledger, saved.manifest.source, detail=detail)
    if listed:
        lists.print_groups(resources)
    lists.print_deletes(resources)
    print_notes(page, saved, resources, kind)
    page.last_line(Text(saved.summary.line, style="bold"))
