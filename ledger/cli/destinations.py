"""One destination, one binding: the ledger records it under one name, whatever alias is used (design 5, G2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ledger.binding import DestinationBinding
    from ledger.cli.settings import Settings
    from ledger.store.ledger import Ledger


async def binding_to_write(settings: Settings, ledger: Ledger, named: DestinationBinding) -> DestinationBinding:
    """The binding under which a declared destination is committed to and written, whichever of its names is given.

    Raises:
        ConfigurationError: it is not declared.
        AliasRecordedError: the ledger already keeps it under another of its names: two writers could serve one server.
    """
    from consumers.errors import AliasRecordedError

    destination = settings.declared(named)
    for alias in destination.other_names:
        if await ledger.binding(alias) is not None:
            raise AliasRecordedError(destination.binding, alias)
    return destination.binding
