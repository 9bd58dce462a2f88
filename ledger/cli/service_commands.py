"""``work``, ``up``, ``down`` and ``migrate``: the service and its database."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from ledger.cli.output import next_command, people
from ledger.cli.serving import WantedParts, serve
from ledger.cli.session import embedded, ledger_dsns, run_async, run_traced, settings_of
from ledger.errors import ApplyLedgerError, ConfigurationError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from ledger.cli.settings import Settings
    from ledger.store.embedded import EmbeddedPostgres

_DOWN = "apply-ledger down"
_SESSIONS_END_WITHIN = 2.0
_LOOK_EVERY = 0.1
"""Seconds."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("work", short_help="Run the service: take commits, apply them, relay events.")(work)
    app.command("up", short_help="Run the embedded database and `work`, in the foreground.")(up)
    app.command("down", short_help="Stop the embedded database; its data is kept.")(down)
    app.command("migrate", short_help="Update the schema of the ledger's database.")(migrate)


IntakeOption = Annotated[
    bool, typer.Option("--intake/--no-intake", help="Take commits from Kafka, if it is configured.")
]
WritersOption = Annotated[bool, typer.Option("--writers/--no-writers", help="Apply committed plans.")]
RelayOption = Annotated[bool, typer.Option("--relay/--no-relay", help="Publish events to Kafka, if it is configured.")]
PortOption = Annotated[
    int | None,
    typer.Option(
        "--metrics-port", min=0, max=65535, help="Port for /metrics, /healthz and /readyz; 0 takes a free one."
    ),
]
HostOption = Annotated[str, typer.Option("--metrics-host", help="Address for --metrics-port.")]


def work(
    context: typer.Context,
    intake: IntakeOption = True,
    writers: WritersOption = True,
    relay: RelayOption = True,
    metrics_port: PortOption = None,
    metrics_host: HostOption = "127.0.0.1",
) -> int:
    """Serve every declared destination until SIGTERM: take commits in order, apply, record, relay.

    Any number of workers may run, on any hosts: they share the destinations, and each has one writer at a time.
    """
    wanted = WantedParts(intake, writers, relay, metrics_port, metrics_host)
    return run_traced(serve(settings_of(context), wanted))


def up(
    context: typer.Context,
    metrics_port: PortOption = None,
    metrics_host: HostOption = "127.0.0.1",
) -> int:
    """Start the embedded database and `work` in the foreground."""
    settings = settings_of(context)
    _require_embedded(settings, "up")
    return run_traced(serve(settings, WantedParts(metrics_port=metrics_port, metrics_host=metrics_host)))


class DatabaseInUseError(ApplyLedgerError):
    """The embedded database is to be stopped, and other processes are at work with it."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUSY


def down(
    context: typer.Context,
    force: Annotated[bool, typer.Option("--force", help="Stop it although other processes use it.")] = False,
) -> int:
    """Stop the embedded database. Its data is kept; any command starts it again."""
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
    if status.pid is not None and not force:
        run_async(_require_unused(server))
    stopped = run_async(server.stop())
    people.print(f"the embedded database in {folder} " + ("is stopped" if stopped else "was not running"))
    return ExitCode.DONE


async def _require_unused(server: EmbeddedPostgres) -> None:
    """A service whose database is taken away starts it again, into whatever is being done with its folder."""
    from ledger.store.embedded_errors import EmbeddedServerError
    from ledger.store.errors import StoreError
    from ledger.store.ledger import Ledger

    try:
        dsns = await server.ensure_running()
        async with await Ledger.open(dsns.reader, application_name=_DOWN) as ledger:
            others = await ledger.other_sessions(_DOWN)
            waited = 0.0
            while others and waited < _SESSIONS_END_WITHIN:  # those of a command that has just ended
                await asyncio.sleep(_LOOK_EVERY)
                waited += _LOOK_EVERY
                others = await ledger.other_sessions(_DOWN)
    except (EmbeddedServerError, StoreError):
        return  # a server that answers nobody serves nobody
    if others:
        raise DatabaseInUseError(
            checked="who is connected to the embedded database",
            expected="nobody",
            found=", ".join(f"{name} ({sessions})" for name, sessions in others.items()),
            next_action="stop these processes first (`work`, `up`, `serve`); --force stops it, and they start it again",
        )


def migrate(
    context: typer.Context,
    status: Annotated[
        bool, typer.Option("--status", help="Change nothing; print where the database and its schema are.")
    ] = False,
) -> int:
    """Update the schema of the ledger's database, as its administrator (APPLY_LEDGER_ADMIN_DSN)."""
    settings = settings_of(context)
    if settings.dsn is None and settings.admin_dsn is None:
        if status:
            found = embedded(settings).status()
            state = (
                f"runs as process {found.pid}" if found.pid else "is stopped" if found.exists else "does not exist yet"
            )
            people.print(f"the embedded database in {found.folder} {state}")
            if found.pid and found.reader:
                people.print(f"to read it with other programs: psql '{found.reader}'")
                people.print(f"the password of ledger_reader is the value of 'reader' in {found.credentials}")
            return ExitCode.DONE
        run_async(ledger_dsns(settings))
        people.print("the embedded database is up to date")
        return ExitCode.DONE
    return run_async(_schema_status(settings) if status else _migrate(settings))


async def _schema_status(settings: Settings) -> int:
    """Print where the schema of the user's own server is; any role that may read it is enough, nothing is applied."""
    from ledger.store.migrate import schema_state

    dsn = settings.admin_dsn or settings.dsn
    if dsn is None:
        raise RuntimeError("called without a server")
    state = await schema_state(dsn.get_secret_value())
    people.print(f"the database is at schema {state.applied[-1] if state.applied else 'none'}")
    for name in state.missing:
        people.print(f"missing: {name}")
    for name in state.unknown:
        people.print(f"unknown to this program: {name}")
    if state.unknown:
        next_command("install the program that migrated it, or a newer one")
    elif state.missing:
        next_command("apply-ledger migrate")
    else:
        people.print("that is exactly the schema of this program")
    return ExitCode.DONE


async def _migrate(settings: Settings) -> int:
    from ledger.store.migrate import migrate as migrate_database

    if settings.admin_dsn is None:
        raise ConfigurationError(
            checked="APPLY_LEDGER_ADMIN_DSN",
            expected="the connection of an administrator of the ledger's database",
            found="nothing",
            next_action="set it (or APPLY_LEDGER_ADMIN_DSN_FILE) for this command only; the service never uses it",
        )
    applied = await migrate_database(settings.admin_dsn.get_secret_value())
    for name in applied:
        people.print(f"applied {name}")
    people.print("the database is up to date" if applied else "the database was up to date already")
    next_command("grant ledger_writer and ledger_projector to the login role of APPLY_LEDGER_DSN")
    return ExitCode.DONE


def _require_embedded(settings: Settings, command: str) -> None:
    if settings.dsn is not None:
        raise ConfigurationError(
            checked=f"what `{command}` starts or stops",
            expected="the embedded database",
            found="APPLY_LEDGER_DSN names another server",
            next_action="use `work`; start and stop that server with its own tools",
        )
