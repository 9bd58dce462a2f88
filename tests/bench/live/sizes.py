"""How large a run is: the figures of ``full`` count, ``small`` is for looking, ``tiny`` shows that the cases work."""

from __future__ import annotations

from dataclasses import dataclass

from tests.live.inventories import SITES_TO_DEVICES


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of each case.

    Attributes:
        device_types: of the library, each with its manufacturer and at most two templates of each sort.
        netbox_kinds: what is taken of the NetBox demo.
        loop: objects that one after the other are written in the other cases.
        inventory_rounds, loop_rounds: of each variant, after one that is not timed.
    """

    device_types: int
    netbox_kinds: frozenset[str]
    loop: int
    inventory_rounds: int
    loop_rounds: int


SIZES = {
    "full": Sizes(550, frozenset(SITES_TO_DEVICES), 200, inventory_rounds=3, loop_rounds=5),
    "small": Sizes(60, frozenset(SITES_TO_DEVICES), 100, inventory_rounds=2, loop_rounds=3),
    "tiny": Sizes(4, frozenset({"OrganizationManufacturer", "DcimDeviceType"}), 6, inventory_rounds=1, loop_rounds=1),
}
