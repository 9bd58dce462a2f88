"""What every command shares: settings, the ledger it works on, and the destination it may speak to."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
import typer

from ledger.cli.settings import Settings, load_settings

if TYPE_CHECKING:
    pass


@dataclass
class Invocation:
    """One call of the program: the global options, and the settings that follow from them."""

    config: Path | None
    verbose: bool

    @cached_property
    def settings(self) -> Settings:
        """Settings, read once; logging is set up with them."""
        _set_up_logging(verbose=self.verbose)
        return load_settings(config=self.config)


def invocation(context: typer.Context) -> Invocation:
    """The invocation that the global callback put on the context."""
    found = context.find_object(Invocation)
    if found is None:
        raise RuntimeError("the global callback did not run")
    return found


T = TypeVar("T")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine on an event loop of its own."""
    return asyncio.run(work)


def _set_up_logging(*, verbose: bool) -> None:
    """structlog on stderr: JSON lines, or a console style on a terminal; the libraries' loggers stay at warning."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    renderer: Any = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
