"""Finds the run that the user names: ``<sync-name>/<run-id>``, or a whole run id if only one sync has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledger.cli.fresh_plan import fresh_plan
from ledger.cli.plan_origin import origin_of
from ledger.close_match import with_close_match
from ledger.errors import ApplyLedgerError
from ledger.plan.files import unreadable
from ledger.plan.layout import PLAN_DIRECTORY, require_run_id

if TYPE_CHECKING:
    from ledger.store.ledger import BindingRow
    from ledger.store.served import ServedLedger

NEWEST = 5
"""Saved plans that a refusal names."""
LOOKED_AT = 1000
"""Committed runs among which the one that was meant is looked for."""


class RunNotFoundError(ApplyLedgerError):
    """No run, or several, have the name that was given."""


def run_id_of(name: str) -> str:
    """The run id in ``<sync-name>/<run-id>`` or ``<run-id>``."""
    return require_run_id(name.rsplit("/", 1)[-1])


def find_run_directory(root: Path, name: str) -> Path:
    """The run directory below ``root``; nothing outside of it is ever looked at.

    Raises:
        RunNotFoundError: none, or a bare run id that several syncs have.
        PlanArtifactUnreadableError: the folders of the runs must not be read.
    """
    run_id = run_id_of(name)
    sync = require_run_id(name.rsplit("/", 1)[0]) if "/" in name else None
    try:
        named = [root / sync / run_id] if sync is not None else root.glob(f"*/{run_id}")
        found = sorted(path for path in named if path.is_dir())
    except OSError as exc:  # pathlib passes over what is not there, not over what must not be looked at
        raise unreadable(root, exc.strerror or type(exc).__name__) from exc
    if len(found) == 1:
        return found[0]
    if found:
        raise RunNotFoundError(
            checked=f"the run {name!r} below {root}",
            expected="exactly one run directory",
            found=", ".join(f"{path.parent.name}/{path.name}" for path in found),
            next_action="name it as <sync-name>/<run-id>",
        )
    raise _no_such_plan(root, name)


def _no_such_plan(root: Path, name: str) -> RunNotFoundError:
    """Names what the user may have meant: a slip of the hand, else the newest saved plans."""
    saved = sorted((path for path in root.glob(f"*/*/{PLAN_DIRECTORY}")), key=lambda path: path.parent.name)
    names = [f"{path.parent.parent.name}/{path.parent.name}" for path in reversed(saved)]
    meant = with_close_match(name, names if "/" in name else [each.rsplit("/", 1)[-1] for each in names])
    newest = f"the newest saved plans there: {', '.join(names[:NEWEST])}" if names else "nothing is planned there yet"
    return RunNotFoundError(
        checked=f"the run {name!r} below {root}",
        expected="exactly one run directory",
        found="none" if meant == name else f"none of the name {meant}",
        next_action=f"{newest}; `apply-ledger plan` makes one, and INFRAHUB_SYNC_CACHE_DIR moves the root",
    )


def plan_command(root: Path, run: str) -> str:
    """The command that makes a fresh plan like that of a run: of the same file, as far as this host has the run."""
    from ledger.plan.review import PlanOrigin

    try:
        origin = origin_of(find_run_directory(root, run))
    except ApplyLedgerError:
        origin = PlanOrigin()
    return fresh_plan(origin)


async def binding_of_run(ledger: ServedLedger, run_id: str) -> BindingRow:
    """The binding to which a run was committed.

    Raises:
        RunNotFoundError: it was never committed to this ledger.
    """
    for row in await ledger.bindings():
        if await ledger.run_commit(row.id, run_id) is not None:
            return row
    committed = [row.run_id for row in await ledger.runs_page(behind=None, limit=LOOKED_AT)]
    meant = with_close_match(run_id, committed)
    raise RunNotFoundError(
        checked=f"the run {run_id} in the ledger",
        expected="a committed run, by its whole id",
        found="no commit of it" if meant == run_id else f"no commit of {meant}",
        next_action="`apply-ledger runs` lists what was committed",
    )
