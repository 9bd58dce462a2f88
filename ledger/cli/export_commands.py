"""``export`` and ``prove``: files that somebody else can check without this database."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.cli.checkpoint_commands import key_folder
from ledger.cli.chosen_bindings import BranchOption, UrlOption, one_binding
from ledger.cli.output import OutputForm, next_command, people, write_document, write_records, write_rows
from ledger.cli.plan_commands import OutputOption
from ledger.cli.progress import progress
from ledger.cli.run_lookup import run_id_of
from ledger.cli.session import open_ledger, require_ledger, run_async, settings_of
from ledger.errors import UsageError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit.export.layout import ExportManifest
    from ledger.cli.settings import Settings

EXPORT_COLUMNS = ("folder", "binding", "events", "plans", "head_position", "checkpoint")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("export", short_help="Export the record of a binding to files.")(export)
    app.command("prove", short_help="Write a proof of one operation's outcome to a file.")(prove)


def export(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new or empty folder.")],
    url: UrlOption = None,
    branch: BranchOption = None,
    row_group: Annotated[
        int, typer.Option("--row-group", min=1, max=1_000_000, help="Events per row group of the Parquet file.")
    ] = 50_000,
    lines: Annotated[bool, typer.Option("--ndjson/--no-ndjson", help="Also write the events as NDJSON.")] = True,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Write the whole record of one binding to files: events, runs, plans with coverage reports, the last checkpoint.

    `verify --export DIR` checks them without database or service; DuckDB and other tools can read them.
    """
    settings = settings_of(context)
    require_ledger(settings)
    manifest = run_async(_export(settings, folder, url, branch, row_group, lines=lines))
    row = {
        "folder": str(folder),
        "binding": f"{manifest.url} [{manifest.branch}]",
        "events": manifest.events,
        "plans": len(manifest.plans),
        "head_position": manifest.head_position,
        "head_hash": manifest.head_hash,
        "checkpoint": any(file.path == "checkpoint.note" for file in manifest.files),
        "files": len(manifest.files),
    }
    write_rows([row], form=output, stream="exports", columns=EXPORT_COLUMNS)
    if not row["checkpoint"]:
        people.print(
            "without a checkpoint nobody can tell this export from a forged one. If any was ever published of this"
            " binding, find out why the log has none, and publish none before: it would sign what the log is now"
        )
    next_command(
        shlex.join(
            ["apply-ledger", "verify", "--export", str(folder), *(_key_options(settings) if row["checkpoint"] else [])]
        )
    )
    return ExitCode.DONE


def _key_options(settings: Settings) -> list[str]:
    """The public keys that sign here, as whoever gets the files has to name them; without one nothing is proven."""
    signing = [known.key for known in key_folder(settings).known() if known.signs]
    return [word for public in signing for word in ("--key", public.text())]


async def _export(
    settings: Settings, folder: Path, url: str | None, branch: str | None, group: int, *, lines: bool
) -> ExportManifest:
    from ledger.audit.export.writing import export_binding

    async with open_ledger(settings) as ledger:
        row = await one_binding(ledger, url, branch)
        with progress("events") as report:
            return await export_binding(
                ledger,
                row,
                folder,
                group=group,
                lines=lines,
                progress=lambda done, total: report("exporting", done, total),
            )


def prove(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="<sync-name>/<run-id>, or a run id.")],
    operation: Annotated[str, typer.Argument(metavar="OPERATION", help="The operation's id.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")] = Path("proof.json"),
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Write a proof of one operation's outcome to a file, without the rest of its plan.

    The file contains the operation's line, its outcomes, the commit and any resumptions, and for each of them the hash
    path to a signed checkpoint. `verify --proof FILE --key KEY` checks it on any machine. An existing file is never
    replaced.
    """
    from ledger.audit.proof import proof_file
    from ledger.plan.files import write_durably

    settings = settings_of(context)
    require_ledger(settings)
    if to.exists():
        raise UsageError(
            checked=f"the file {to}",
            expected="a file that is not there yet",
            found="one that is there",
            next_action="name another one with --to",
        )
    proof = run_async(_prove(settings, run_id_of(run), operation))
    write_durably(to, proof_file(proof))
    summary = {"file": str(to), **proof["about"]}
    if output is OutputForm.JSON:
        write_document(summary)
    elif output is OutputForm.NDJSON:
        write_records([summary], stream="proofs")
    else:
        write_rows([summary], form=output, stream="proofs", columns=("file", "run_id", "operation_id", "events"))
    next_command(shlex.join(["apply-ledger", "verify", "--proof", str(to), *_key_options(settings)]))
    return ExitCode.DONE


async def _prove(settings: Settings, run_id: str, operation_id: str) -> dict[str, Any]:
    from ledger.audit.proof import prove_operation

    async with open_ledger(settings) as ledger:
        return await prove_operation(ledger, await one_binding(ledger, None, None, run_id), run_id, operation_id)
