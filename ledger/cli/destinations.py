"""One destination, one binding: whatever it is called, the ledger keeps it under one name (design 5, G2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.errors import ConfigurationError

if TYPE_CHECKING:
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.store.ledger import Ledger


async def binding_to_write(settings: Settings, ledger: Ledger, named: DestinationBinding) -> DestinationBinding:
    """The binding under which a declared destination is committed to and written, whichever of its names is given.

    Raises:
        ConfigurationError: it is not declared, or the ledger already keeps it under another of its names: then two
            writers could serve one server at once.
    """
    destination = settings.declared(named)
    kept = {row.binding for row in await ledger.bindings()}
    if other := kept.intersection(destination.other_names):
        former = min(map(str, other))
        raise ConfigurationError(
            checked=f"the declared destination {destination.binding}",
            expected="the one name under which the ledger keeps it",
            found=f"{former} in the ledger, declared here as an alias",
            next_action=f"declare {former} as the url and {destination.url} as its alias",
        )
    return destination.binding
