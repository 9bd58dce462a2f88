"""Putting the service together from the settings: which parts, for which destinations, with metrics and health."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.cli.applying import new_writer
from ledger.cli.output import people
from ledger.cli.own_database import keep_running
from ledger.cli.session import embedded, ledger_dsns
from ledger.errors import ConfigurationError
from ledger.exit_codes import ExitCode

if TYPE_CHECKING:
    from consumers.service.checkpoints import CheckpointPolicy
    from consumers.service.parts import Part
    from consumers.service.sampling import SampledLedger
    from consumers.service.service import Service
    from consumers.service.status import StatusServer
    from ledger.cli.settings import Settings
    from ledger.store.embedded import Dsns


@dataclass(frozen=True, slots=True)
class WantedParts:
    """What one process is to do. ``metrics_port`` None: no metrics, no health; 0: a free port."""

    intake: bool = True
    writers: bool = True
    relay: bool = True
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"


async def serve(settings: Settings, wanted: WantedParts) -> int:
    """Run the service until SIGINT or SIGTERM.

    Raises:
        NothingToServeError: no part is wanted, or could run.
        ConfigurationError: no destination is declared, or what Kafka needs is wrong.
        StatusPortError: the port for metrics cannot be listened on.
        ApplyLedgerError: what ended a part, and the service with it.
    """
    from consumers.service.parts import Part
    from consumers.service.sampling import SampledLedger
    from ledger.plan.private_copy import copy_folder
    from ledger.plan.private_folder import remove_abandoned

    if not settings.destination and (wanted.writers or wanted.intake):
        raise ConfigurationError(
            checked="the declared destinations",
            expected="at least one",
            found="none",
            next_action="add a [[destination]] to apply-ledger.toml, or set INFRAHUB_ADDRESS and INFRAHUB_API_TOKEN",
        )
    if not isinstance(settings.artifact_root, Path):
        await asyncio.to_thread(remove_abandoned, copy_folder())
    service = _service(settings, await ledger_dsns(settings), wanted)
    parts = service.parts()
    stop = until_signalled()
    more = []
    if settings.dsn is None:
        more.append(Part("database", partial(keep_running, embedded(settings))))
    async with SampledLedger(service.dsn) as sampled:
        if wanted.metrics_port is not None:
            status = _status(service, parts, sampled, wanted.metrics_host, wanted.metrics_port)
            more.append(Part("status", status.run_until))
            people.print(f"metrics and health at {status.address}")
        _say_what_is_served(settings, service)
        await service.run_until(stop, parts, *more)
    people.print("stopped; open runs are left for the next writer")
    return ExitCode.DONE


def _status(service: Service, parts: Sequence[Part], sampled: SampledLedger, host: str, port: int) -> StatusServer:
    from consumers.service.status import StatusServer

    return StatusServer(
        host,
        port,
        service.metrics,
        parts,
        stuck=service.stuck,
        unready=lambda: service.unready(parts),
        refresh=partial(service.refresh_metrics, sampled),
    )


def until_signalled() -> asyncio.Event:
    """An event that SIGINT or SIGTERM sets."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


def _service(settings: Settings, dsns: Dsns, wanted: WantedParts) -> Service:
    from consumers.service.metrics import ServiceMetrics
    from consumers.service.service import Service
    from consumers.sharing import Share
    from ledger.store.doorbell import Doorbell

    bindings = [destination.binding for destination in settings.destination]
    checkpoints = _checkpoints(settings) if wanted.writers else None
    metrics, share, kafka, bell = ServiceMetrics(), Share(bindings), settings.kafka, Doorbell(dsns.writer)
    return Service(
        dsn=dsns.writer,
        declared=bindings,
        writers=[
            new_writer(
                settings,
                dsns,
                binding,
                None,
                turns=share,
                bell=bell,
                observe=metrics.observer(binding),
                recorded=metrics.recorder(binding),
            )
            for binding in bindings
            if wanted.writers
        ],
        share=share,
        bell=bell if wanted.writers else None,
        intake=kafka.intake_settings() if wanted.intake and kafka.is_configured else None,
        relay=kafka.relay_settings() if wanted.relay and kafka.is_configured else None,
        metrics=metrics,
        checkpoints=checkpoints,
    )


def _checkpoints(settings: Settings) -> CheckpointPolicy | None:
    """When this service publishes checkpoints; a missing key is told now, and not after the first thousand events.

    Raises:
        NoSigningKeyError, KeyUnreadableError: it is to sign, and cannot.
    """
    if settings.checkpoint_events is None and settings.checkpoint_seconds is None:
        return None
    from consumers.service.checkpoints import CheckpointPolicy
    from ledger.cli.checkpoint_commands import key_folder

    keys = key_folder(settings)
    keys.signing()
    return CheckpointPolicy(
        settings.checkpoint_events,
        settings.checkpoint_seconds,
        keys.signing,
        settings.checkpoint_dir,
        known=keys.public_keys,
    )


def _say_what_is_served(settings: Settings, service: Service) -> None:
    for writer in service.writers:
        people.print(f"serving {writer.binding}")
    if service.intake is not None:
        people.print(f"taking commits from topic {service.intake.topic} at {settings.kafka.brokers}")
    if service.checkpoints is not None:
        people.print(f"publishing checkpoints to {settings.checkpoint_dir}")
    if service.relay is not None:
        people.print(f"relaying events to topic {service.relay.topic} at {settings.kafka.brokers}")
