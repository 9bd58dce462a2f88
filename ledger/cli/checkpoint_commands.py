"""``checkpoint``: sign a head of the ledger, keep it elsewhere, and look after the keys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ledger.cli.chosen_bindings import BranchOption, UrlOption, chosen_bindings
from ledger.cli.output import OutputForm, clock, next_command, people, write_rows
from ledger.cli.plan_commands import OutputOption
from ledger.cli.session import open_ledger, require_ledger, run_async, settings_of
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.audit.keys import KeyFolder
    from ledger.audit.publish import Published
    from ledger.audit.signed_note import SigningKey
    from ledger.cli.settings import Settings

PUBLISH_COLUMNS = ("binding", "position", "event", "new", "keys", "sealed_plans", "file")
LIST_COLUMNS = ("binding", "position", "event", "signed_at", "keys")
KEY_COLUMNS = ("name", "signs", "key")

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits, '.', '-' and '_'.")]

checkpoint = typer.Typer(help="Sign heads of the ledger, to be stored out of reach of the owner of the database.")
key = typer.Typer(help="Manage the keys that sign and check checkpoints.")


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    checkpoint.add_typer(key, name="key")
    app.add_typer(checkpoint, name="checkpoint", short_help="Sign heads of the ledger, manage keys.")


@checkpoint.command("publish", short_help="Sign the head of each binding and write it to a file.")
def publish(
    context: typer.Context,
    url: UrlOption = None,
    branch: BranchOption = None,
    to: Annotated[
        Path | None, typer.Option("--to", help="Folder for the signed notes; default: the setting checkpoint_dir.")
    ] = None,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """Sign the head of each binding, record it as an event, and write it to a file.

    Copy the files to a place where the owner of the database cannot change them; otherwise they prove nothing.
    """
    settings = settings_of(context)
    keys = key_folder(settings).signing()
    require_ledger(settings)
    published = run_async(_publish(settings, keys, to or settings.checkpoint_dir, url, branch))
    rows = [_row(done, path) for done, path in published]
    write_rows(rows, form=output, stream="checkpoints", columns=PUBLISH_COLUMNS, spare=("sealed_plans", "keys"))
    if rows:
        people.print(
            "store these files elsewhere, and give auditors the public key (apply-ledger checkpoint key public)"
        )
        next_command(f"apply-ledger verify --checkpoint {rows[-1]['file']}")
    return ExitCode.DONE


@checkpoint.command("list", short_help="List published checkpoints, newest first.")
def list_checkpoints(
    context: typer.Context,
    url: UrlOption = None,
    branch: BranchOption = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 20,
    output: OutputOption = OutputForm.TABLE,
) -> int:
    """List the checkpoints in the ledger, newest first; `verify` checks whether the ledger still extends them."""
    settings = settings_of(context)
    require_ledger(settings)
    rows = run_async(_listed(settings, url, branch))
    shown = rows[:limit]
    if output is OutputForm.TABLE:
        shown = [{**row, "signed_at": clock(str(row["signed_at"]))} for row in shown]
    write_rows(shown, form=output, stream="checkpoints", columns=LIST_COLUMNS, total=len(rows))
    if not rows:
        next_command("apply-ledger checkpoint publish")
    return ExitCode.DONE


@key.command("new", short_help="Create a key pair.")
def new_key(context: typer.Context, name: NameArgument, output: OutputOption = OutputForm.TABLE) -> int:
    """Create a key pair; every private key of the folder signs each checkpoint from now on.

    To replace a key without a gap, create the new one, let both sign until auditors have it, then retire the old one.
    """
    folder = key_folder(settings_of(context))
    made = folder.new(name)
    write_rows([{"name": name, "signs": True, "key": made.text()}], form=output, stream="keys", columns=KEY_COLUMNS)
    people.print(f"the private key is {folder.path / name}.key; whoever has it can sign in this ledger's name")
    return ExitCode.DONE


@key.command("list", short_help="List keys.")
def list_keys(context: typer.Context, output: OutputOption = OutputForm.TABLE) -> int:
    """List keys, and which of them sign."""
    folder = key_folder(settings_of(context))
    rows = [{"name": known.key.name, "signs": known.signs, "key": known.key.text()} for known in folder.known()]
    write_rows(rows, form=output, stream="keys", columns=KEY_COLUMNS)
    if not rows:
        people.print(f"none in {folder.path}")
        next_command("apply-ledger checkpoint key new NAME")
    return ExitCode.DONE


@key.command("public", short_help="Print a public key, for auditors.")
def public_key(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the key; default: all that sign.")] = None,
) -> int:
    """Print public keys, one per line, as auditors need them for `verify --key`."""
    folder = key_folder(settings_of(context))
    found = [folder.public(name)] if name is not None else [known.key for known in folder.known() if known.signs]
    for public in found:
        typer.echo(public.text())
    if not found:
        next_command("apply-ledger checkpoint key new NAME")
    return ExitCode.DONE


@key.command("retire", short_help="Remove a private key; the public key is kept.")
def retire_key(
    context: typer.Context,
    name: NameArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation; required in scripts.")] = False,
) -> int:
    """Remove a private key for ever; the public key is kept, so that its checkpoints can still be checked."""
    folder = key_folder(settings_of(context))
    folder.public(name)
    if not yes and typer.prompt(f"type {name} to remove its private key") != name:
        people.print("nothing was removed")
        return ExitCode.ERROR
    folder.retire(name)
    people.print(f"{name} no longer signs checkpoints")
    return ExitCode.DONE


def key_folder(settings: Settings) -> KeyFolder:
    """The folder of keys of this installation."""
    from ledger.audit.keys import KeyFolder

    return KeyFolder(settings.checkpoint_keys)


async def _publish(
    settings: Settings, keys: list[SigningKey], folder: Path, url: str | None, branch: str | None
) -> list[tuple[Published, Path]]:
    from ledger.audit.note_files import publish_and_keep

    known = key_folder(settings).public_keys()
    async with open_ledger(settings) as ledger:
        rows = await chosen_bindings(ledger, url, branch)
        # A destination that was registered and never written to has no head; it is no fault of the others.
        signable = [row for row in rows if row.head_position or url is not None]
        return [await publish_and_keep(ledger, row, keys, folder, known=known) for row in signable]


async def _listed(settings: Settings, url: str | None, branch: str | None) -> list[dict[str, Any]]:
    from ledger.audit.published import all_checkpoints

    found: list[dict[str, Any]] = []
    async with open_ledger(settings) as ledger:
        for row in await chosen_bindings(ledger, url, branch):
            known = await all_checkpoints(ledger, row)
            found += [{"binding": str(row.binding), "event": item.event_position, **item.said} for item in known]
    return sorted(found, key=lambda record: str(record.get("signed_at")), reverse=True)


def _row(done: Published, path: Path) -> dict[str, Any]:
    return {
        "binding": f"{done.url} [{done.branch}]",
        "position": done.position,
        "event": done.event_position,
        "new": done.new,
        "keys": ", ".join(done.keys),
        "sealed_plans": done.sealed,
        "file": str(path),
    }
