"""Selects the bindings for a reading command: by url and branch, or by a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ledger.binding import DestinationBinding
from ledger.cli.run_lookup import binding_of_run
from ledger.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from ledger.store.ledger import BindingRow
    from ledger.store.served import ServedLedger

UrlOption = Annotated[str | None, typer.Option("--url", help="Only the binding with this url.")]
BranchOption = Annotated[str | None, typer.Option("--branch", help="Only the binding with this branch.")]


def normalised_url(url: str) -> str:
    """A url in the one spelling under which bindings are kept.

    Raises:
        UsageError: it is none.
    """
    try:
        return DestinationBinding(url=url, branch="main").normalised().url
    except ConfigurationError as exc:
        raise UsageError(
            checked="--url", expected=exc.expected, found=exc.found, next_action="name it in full"
        ) from exc


async def chosen_bindings(
    ledger: ServedLedger, url: str | None, branch: str | None, run_id: str | None = None
) -> list[BindingRow]:
    """The bindings that were asked for: one by its run, or all that match url and branch.

    Raises:
        UsageError: url or branch match none.
        RunNotFoundError: the run was never committed here.
    """
    if run_id is not None:
        return [await binding_of_run(ledger, run_id)]
    rows = await ledger.bindings()
    wanted = None if url is None else normalised_url(url)
    chosen = [row for row in rows if wanted in (None, row.url) and branch in (None, row.branch)]
    if not chosen and (url is not None or branch is not None):
        raise UsageError(
            checked="--url and --branch",
            expected=_listed(rows) or "a binding of this ledger; it has none yet",
            found=f"{url or 'any url'} [{branch or 'any branch'}]",
            next_action="apply-ledger runs lists what was committed where",
        )
    return chosen


async def one_binding(
    ledger: ServedLedger, url: str | None, branch: str | None, run_id: str | None = None
) -> BindingRow:
    """The one binding that was asked for.

    Raises:
        UsageError: url and branch match none or several.
        RunNotFoundError: the run was never committed here.
    """
    rows = await chosen_bindings(ledger, url, branch, run_id)
    if len(rows) == 1:
        return rows[0]
    raise UsageError(
        checked="which destination is meant",
        expected="one binding",
        found=_listed(rows) or "none in this ledger",
        next_action="name it with --url and --branch"
        if rows
        else "commit a plan first; `apply-ledger runs` lists them",
    )


def _listed(rows: list[BindingRow]) -> str:
    return ", ".join(str(row.binding) for row in rows)
