"""Shared by all commands: settings, the ledger, and access to a destination."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
import typer
from pydantic import SecretStr

from ledger import event_loop
from ledger.cli.settings import DestinationSettings, LogLevel, Settings, load_settings
from ledger.cli.tracing import exported_spans
from ledger.errors import ConfigurationError
from ledger.shortage import shortage_of

if TYPE_CHECKING:
    from consumers.infrahub.known_schemas import KnownSchemas
    from consumers.infrahub.settings import InfrahubSettings
    from ledger.store.embedded import Dsns, EmbeddedPostgres
    from ledger.store.served import ServedLedger

T = TypeVar("T")


@dataclass
class Invocation:
    """One call of the program: the global options, and the settings that follow from them."""

    config: Path | None
    verbose: bool

    @cached_property
    def settings(self) -> Settings:
        """Settings, read once; logging is set up with them."""
        settings = load_settings(config=self.config)
        _set_up_logging("info" if self.verbose else settings.log_level)
        return settings


def settings_of(context: typer.Context) -> Settings:
    """The settings of this invocation; the global callback put them on the context."""
    found = context.find_object(Invocation)
    if found is None:
        raise RuntimeError("the global callback did not run")
    return found.settings


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine on an event loop of its own."""
    return event_loop.run(work)


def run_traced(work: Coroutine[Any, Any, T]) -> T:
    """The same for what commits and applies: its spans go to a collector, where one is named."""
    with exported_spans(os.environ):
        return event_loop.run(work)


def embedded(settings: Settings) -> EmbeddedPostgres:
    """The embedded server of this installation (not started)."""
    # imported here: asyncpg, httpx and the SDK together would cost every `--help` half a second
    from ledger.store.embedded import EmbeddedPostgres, default_folder

    return EmbeddedPostgres(settings.data_dir or default_folder())


async def ledger_dsns(settings: Settings) -> Dsns:
    """How to reach the ledger: the configured server, else the embedded one, which is started where it does not run."""
    from ledger.store.embedded import Dsns

    if settings.dsn is None:
        return await embedded(settings).ensure_running()
    dsn = settings.dsn.get_secret_value()
    admin = settings.admin_dsn.get_secret_value() if settings.admin_dsn else ""
    return Dsns(admin=admin, writer=dsn, projector=dsn, reader=dsn)


def ledger_exists(settings: Settings) -> bool:
    """Whether there is a ledger to ask without creating one; a review must not make folders (A85, C49)."""
    return settings.dsn is not None or embedded(settings).status().exists


class LedgerMissingError(ConfigurationError):
    """There is no ledger where one was to be read."""


def require_ledger(settings: Settings) -> None:
    """For commands that only read: a mistyped folder must not look like a ledger in which nothing is wrong.

    Raises:
        LedgerMissingError: nothing was ever recorded here.
    """
    if ledger_exists(settings):
        return
    folder = embedded(settings).status().folder
    closed = occupied(folder)
    raise LedgerMissingError(
        checked=f"the embedded ledger in {folder}",
        expected="a ledger in which something was recorded",
        found="a folder that holds none, or that this user may not read" if closed else "none",
        next_action="run this as the user whose ledger it is, or check APPLY_LEDGER_DATA_DIR or APPLY_LEDGER_DSN"
        if closed
        else "check APPLY_LEDGER_DATA_DIR or APPLY_LEDGER_DSN; planning and applying make a new one",
    )


def occupied(folder: Path) -> bool:
    """Whether something is at the place of the embedded ledger, be it that this user may not look at it."""
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
    except OSError:
        return True


@asynccontextmanager
async def open_ledger(settings: Settings) -> AsyncIterator[ServedLedger]:
    """The ledger of this installation, open for one command."""
    from ledger.store.served import ServedLedger

    dsns = await ledger_dsns(settings)
    async with await ServedLedger.open(dsns.writer) as ledger:
        yield ledger


def infrahub_settings(
    settings: Settings, destination: DestinationSettings, *, fallback: SecretStr | None = None
) -> InfrahubSettings:
    """How to reach a declared destination; the token is taken from its file or variable now and kept out of sight.

    ``fallback`` is a token of a sync's own file, for reading while planning; the writer never sees such a file.
    """
    from consumers.infrahub.settings import InfrahubSettings

    try:
        token = destination.token(os.environ)
    except ConfigurationError:
        if fallback is None:
            raise
        token = fallback
    return InfrahubSettings(
        url=destination.url,
        branch=destination.branch,
        token=token,
        ca_file=destination.ca_file,
        verify_tls=destination.verify_tls,
        request_timeout=settings.writer.request_timeout,
    )


def known_schemas() -> KnownSchemas:
    """Schemas of destinations that earlier commands of this user fetched; they stand in the user's cache folder."""
    from consumers.infrahub.known_schemas import KnownSchemas

    return KnownSchemas(_cache_folder(os.environ) / "schemas")


def _cache_folder(environ: Mapping[str, str]) -> Path:
    """The XDG cache folder, as root ``/var/cache/apply-ledger``. The XDG specification ignores a relative value."""
    base = environ.get("XDG_CACHE_HOME", "")
    if base.startswith("/"):
        return Path(base) / "apply-ledger"
    if os.geteuid() == 0:
        return Path("/var/cache/apply-ledger")
    return Path(environ.get("HOME") or "/nonexistent") / ".cache" / "apply-ledger"


def _set_up_logging(lowest: LogLevel) -> None:
    """structlog on stderr: JSON lines, or a console style on a terminal; the libraries' loggers stay at warning."""
    level = logging.getLevelNamesMapping()[lowest.upper()]
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(_shortage_in_a_line)
    renderer: Any = structlog.processors.JSONRenderer()
    if sys.stderr.isatty():
        # Its own way to show an exception prints every variable on the way, the token among them (G12).
        renderer = structlog.dev.ConsoleRenderer(
            colors="NO_COLOR" not in os.environ, exception_formatter=structlog.dev.plain_traceback
        )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _shortage_in_a_line(record: logging.LogRecord) -> bool:
    """What the event loop says of a shortage is a line and no traceback: it is no defect, and the command names it."""
    error = record.exc_info[1] if record.exc_info else None
    shortage = None if error is None else shortage_of(error)
    if shortage is not None:
        record.msg, record.args = f"{record.getMessage().splitlines()[0]}: {shortage.found}", ()
        record.exc_info = record.exc_text = None
    return True
