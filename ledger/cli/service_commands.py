"""``work``, ``up``, ``down`` and ``migrate``: the service and its database."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from ledger.cli.applying import new_writer
from ledger.cli.output import next_command, people
from ledger.cli.session import embedded, ledger_dsns, run_async, settings_of
from ledger.errors import ConfigurationError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.cli.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("work", short_help="Be the writer of every declared destination, as a service.")(work)
    app.command("up", short_help="The embedded database and `work`, in the foreground.")(up)
    app.command("down", short_help="Stop the embedded database; its data stays.")(down)
    app.command("migrate", short_help="Bring the ledger's database up to date.")(migrate)


def work(context: typer.Context) -> int:
    """Be the writer of every declared destination until SIGTERM: take commits in order, apply, record."""
    return run_async(_work(settings_of(context)))


def up(context: typer.Context) -> int:
    """Start the embedded database and `work` in the foreground."""
    settings = settings_of(context)
    _require_embedded(settings, "up")
    return run_async(_work(settings))


def down(context: typer.Context) -> int:
    """Stop the embedded database. Its data stays; any command starts it again."""
    settings = settings_of(context)
    _require_embedded(settings, "down")
    server = embedded(settings)
    status = server.status()
    folder = status.folder
    if folder.exists() and not status.exists:
        raise ConfigurationError(
            checked=f"the embedded database in {folder}",
            expected="a folder that holds one and that this user may read",
            found="another folder, or one of another user",
            next_action="run `down` as the user who started it, or check APPLY_LEDGER_DATA_DIR",
        )
    stopped = run_async(server.stop())
    people.print(f"the embedded database in {folder} " + ("is stopped" if stopped else "was not running"))
    return ExitCode.DONE


def migrate(
    context: typer.Context,
    status: Annotated[bool, typer.Option("--status", help="Only say where the database is.")] = False,
) -> int:
    """Bring the ledger's database up to date, as its administrator (APPLY_LEDGER_ADMIN_DSN)."""
    settings = settings_of(context)
    if settings.dsn is None and settings.admin_dsn is None:
        if status:
            found = embedded(settings).status()
            state = (
                f"runs as process {found.pid}" if found.pid else "is stopped" if found.exists else "does not exist yet"
            )
            people.print(f"the embedded database in {found.folder} {state}")
            return ExitCode.DONE
        run_async(ledger_dsns(settings))
        people.print("the embedded database is up to date")
        return ExitCode.DONE
    return run_async(_migrate(settings))


async def _migrate(settings: Settings) -> int:
    from ledger.store.migrate import migrate as migrate_database

    if settings.admin_dsn is None:
        raise ConfigurationError(
            checked="APPLY_LEDGER_ADMIN_DSN",
            expected="the connection of an administrator of the ledger's database",
            found="nothing",
            next_action="set it (or APPLY_LEDGER_ADMIN_DSN_FILE) for this command alone; the service never uses it",
        )
    applied = await migrate_database(settings.admin_dsn.get_secret_value())
    for name in applied:
        people.print(f"applied {name}")
    people.print("the database is up to date" if applied else "the database was up to date already")
    next_command("grant ledger_writer and ledger_projector to the login role of APPLY_LEDGER_DSN")
    return ExitCode.DONE


async def _work(settings: Settings) -> int:
    from consumers.worker import Worker

    if not settings.destination:
        raise ConfigurationError(
            checked="the declared destinations",
            expected="at least one",
            found="none",
            next_action="add a [[destination]] to apply-ledger.toml, or set INFRAHUB_ADDRESS and INFRAHUB_API_TOKEN",
        )
    dsns = await ledger_dsns(settings)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    writers = [new_writer(settings, dsns, destination.binding, None) for destination in settings.destination]
    for destination in settings.destination:
        people.print(f"serving {destination.binding}")
    await Worker(writers).run_until(stop)
    people.print("stopped; open runs are left for the next writer")
    return ExitCode.DONE


def _require_embedded(settings: Settings, command: str) -> None:
    if settings.dsn is not None:
        raise ConfigurationError(
            checked=f"what `{command}` starts or stops",
            expected="the embedded database",
            found="APPLY_LEDGER_DSN names a server of yours",
            next_action="use `work`, and start and stop that server by its own means",
        )
