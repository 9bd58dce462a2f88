"""A writer of ours in a process of its own that serves one branch of a real server until it is told to end."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import structlog

from consumers.progress import WriterProgress
from consumers.stores import postgres_connector
from consumers.writer import BindingWriter
from ledger.binding import DestinationBinding
from tests.support.real_writer import opener_for, short_times


@dataclass(frozen=True)
class Service:
    """What a worker serves, and its times."""

    dsn: str
    url: str
    branch: str
    token: str
    root: str
    times: Mapping[str, float]


def run(service: Service, connection: Connection) -> None:
    """The process: serves, and sends the name of each run that it begins, or goes on with."""
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(_serve(service, connection))


async def _serve(service: Service, connection: Connection) -> None:
    settings = short_times(Path(service.root), **service.times)
    writer = BindingWriter(
        service.dsn,
        DestinationBinding(url=service.url, branch=service.branch),
        opener_for(service.url, service.branch, service.token, settings.request_timeout),
        settings,
        connect=postgres_connector(settings, allow_unsafe_fsync=True),
        observe=partial(_tell, connection),
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await writer.run_until(stop)


def _tell(connection: Connection, progress: WriterProgress) -> None:
    """Whoever verifies a plan holds the lease, and its requests are the next to leave."""
    if progress.phase == "verifying":
        connection.send(progress.run_id)
