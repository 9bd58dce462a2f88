"""Checks of one declared destination: only reads, over the same connection layer as a run, and nothing is guessed.

:func:`destination_checks` lists them. Later ones need earlier ones, so that one fault is reported once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from consumers.infrahub.connection import open_gateway
from consumers.infrahub.doctor.account import AccountChecks
from consumers.infrahub.doctor.kinds import Identities, KindChecks
from consumers.infrahub.doctor.reachability import ReachabilityChecks
from consumers.infrahub.doctor.server import ServerChecks
from consumers.infrahub.settings import InfrahubSettings
from consumers.infrahub.transport import KEEPALIVE_SECONDS
from ledger.checkup import Check

__all__ = ["Identities", "destination_checks"]


@asynccontextmanager
async def destination_checks(
    settings: InfrahubSettings, identities: Identities | None, *, keepalive: float = KEEPALIVE_SECONDS
) -> AsyncIterator[Sequence[Check]]:
    """The checks of one destination; its connections close with the block.

    Args:
        settings: of the destination. Its request time-out is that of each look.
        identities: of a configuration, whose kinds are looked at; None looks at none.
        keepalive: seconds for which we use an idle connection again; it is watched for a little longer.

    Raises:
        ConfigurationError: settings that no client can be made of.
    """
    reachability = ReachabilityChecks(settings, keepalive)
    async with open_gateway(settings) as gateway:
        server = ServerChecks(gateway)
        account = AccountChecks(gateway, server)
        kinds = KindChecks(gateway, server, account, identities)
        yield (
            Check("host name", reachability.resolved),
            Check("port", reachability.connected, needs=("host name",)),
            *((Check("TLS", reachability.trusted, needs=("port",)),) if reachability.is_tls else ()),
            Check("HTTP", server.answering, needs=("port", "TLS")),
            Check("version", server.supported, needs=("HTTP",)),
            Check("clock", server.clock, needs=("HTTP",)),
            Check("keep-alive", reachability.kept_alive, needs=("HTTP",)),
            Check("token", account.accepted, needs=("HTTP",)),
            Check("branch", server.branch, needs=("HTTP", "token")),
            Check("role", account.may_write, needs=("token", "branch")),
            Check("schema", kinds.readable, needs=("token", "branch")),
            Check("kinds", kinds.keyed, needs=("schema",)),
            Check("permissions", kinds.permitted, needs=("schema", "token")),
        )
