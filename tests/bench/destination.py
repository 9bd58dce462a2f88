"""The sandbox Infrahub in a process of its own, as a real destination is; and what is written to it."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import httpx
from pydantic import SecretStr

from consumers.infrahub.connection import InfrahubOpener, InfrahubSettings, KnownSchemas, declared
from consumers.infrahub.sandbox.faults import FaultRule
from consumers.infrahub.sandbox.server import serve
from consumers.infrahub.transport import TransportFactory
from ledger.plan.model import PlannedOperation
from tests.support.committed_plans import in_order
from tests.support.inventory_operations import device_type, interface_template, manufacturer
from tests.support.real_writer import REAL_SCHEMA, TOKEN

BRANCH = "main"
REQUEST_TIMEOUT = 30.0
_PORTS = 25


@contextmanager
def sandbox_apart(*, seconds: float = 0.0) -> Iterator[str]:
    """Serve a sandbox elsewhere and give its address; each write there takes ``seconds`` longer."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(theirs,))
    process.start()
    theirs.close()
    try:
        url = str(ours.recv())
        if seconds > 0:
            rule = FaultRule(delay_before_write=seconds, count=None)
            httpx.post(
                f"{url}/sandbox/faults",
                json=rule.model_dump(mode="json"),
                headers={"X-INFRAHUB-KEY": TOKEN},
                trust_env=False,
            ).raise_for_status()
        yield url
    finally:
        process.terminate()
        process.join()
        ours.close()


def opener(
    url: str,
    *,
    branch: str = BRANCH,
    token: str = TOKEN,
    factory: TransportFactory | None = None,
    known: KnownSchemas | None = None,
) -> InfrahubOpener:
    """The product's own client, with ordinary times; ``factory`` makes the layer below it, ``known`` is a worker's."""
    settings = InfrahubSettings(url=url, branch=branch, token=SecretStr(token), request_timeout=REQUEST_TIMEOUT)
    return InfrahubOpener(declared(settings), factory=factory, known=known)


def inventory(name: str, count: int) -> list[PlannedOperation]:
    """``count`` creates as an inventory has them: a manufacturer, device types, and ports that refer to these."""
    operations = [manufacturer(f"maker {name}")]
    while len(operations) < count:
        model = f"model {len(operations)}"
        operations.append(device_type(f"maker {name}", model))
        operations += [interface_template(f"maker {name}", model, f"Ethernet{port}") for port in range(_PORTS)]
    return in_order(operations[:count])


def _serve(started: Connection) -> None:
    serve("127.0.0.1", 0, REAL_SCHEMA, TOKEN, started=started.send)
