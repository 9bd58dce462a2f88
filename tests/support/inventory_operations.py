"""Operations on the real schema: manufacturers, device types below them, port templates below those."""

from __future__ import annotations

from typing import Any

from ledger.plan.model import PlannedOperation
from tests.support.operations import create, delete, one, update

_MANUFACTURER, _DEVICE_TYPE, _PORT = "OrganizationManufacturer", "DcimDeviceType", "DcimInterfaceTemplate"


def manufacturer(name: str, **fields: Any) -> PlannedOperation:
    """A create of a manufacturer."""
    return create(_MANUFACTURER, {"name": name}, {"name": name, **fields})


def changed_manufacturer(name: str, destination_id: str, **fields: Any) -> PlannedOperation:
    """An update of one that is there."""
    return update(_MANUFACTURER, {"name": name}, {"name": name, **fields}, destination_id=destination_id)


def gone_manufacturer(name: str) -> PlannedOperation:
    """The recorded delete of one."""
    return delete(_MANUFACTURER, {"name": name})


def device_type(maker: str, name: str, **fields: Any) -> PlannedOperation:
    """A create of a device type; its key crosses to the manufacturer."""
    peer = {"name": maker}
    identity = {"manufacturer": {"identity": peer, "peer_kind": _MANUFACTURER}, "name": name}
    return create(_DEVICE_TYPE, identity, {"name": name, **fields}, one("manufacturer", _MANUFACTURER, **peer))


def interface_template(maker: str, model: str, name: str, **fields: Any) -> PlannedOperation:
    """A create of a port template: keyed by the constraint (device type, name) alone."""
    peer = {"manufacturer": {"identity": {"name": maker}, "peer_kind": _MANUFACTURER}, "name": model}
    identity = {"device_type": {"identity": peer, "peer_kind": _DEVICE_TYPE}, "name": name}
    return create(_PORT, identity, {"name": name, **fields}, one("device_type", _DEVICE_TYPE, **peer))
