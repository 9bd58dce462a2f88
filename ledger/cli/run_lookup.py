"""Finds the run that the user names: ``<sync-name>/<run-id>``, or a run id if it is unique."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ledger.errors import ApplyLedgerError
from ledger.exit_codes import ExitCode
from ledger.plan.files import unreadable
from ledger.plan.layout import require_run_id

if TYPE_CHECKING:
    from ledger.store.ledger import BindingRow, Ledger


class RunNotFoundError(ApplyLedgerError):
    """No run, or several, have the name that was given."""

    exit_code = ExitCode.USAGE


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
    raise RunNotFoundError(
        checked=f"the run {name!r} below {root}",
        expected="exactly one run directory",
        found=", ".join(f"{path.parent.name}/{path.name}" for path in found) or "none",
        next_action="name it as <sync-name>/<run-id>"
        if found
        else "`apply-ledger plan` makes one; INFRAHUB_SYNC_CACHE_DIR moves the root",
    )


async def binding_of_run(ledger: Ledger, run_id: str) -> BindingRow:
    """The binding to which a run was committed.

    Raises:
        RunNotFoundError: it was never committed to this ledger.
    """
    for row in await ledger.bindings():
        if await ledger.run_commit(row.id, run_id) is not None:
            return row
    raise RunNotFoundError(
        checked=f"the run {run_id} in the ledger",
        expected="a committed run",
        found="no commit of it",
        next_action="`apply-ledger runs` lists what was committed",
    )
