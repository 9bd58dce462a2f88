"""Objects with which cases begin."""

from __future__ import annotations

from tests.contract.cases.talk import Talk, peer, values


def a_tag(t: Talk, label: str = "tag") -> str:
    """A tag; its name is the label."""
    return t.write("ProbeTagUpsert", values(name=t.name(label))).id


def a_site(t: Talk, label: str = "site") -> str:
    """A site. It has an asset, since two without one would collide."""
    return t.write("ProbeSiteUpsert", values(name=t.name(label), asset=t.name(label))).id


def a_device(t: Talk, label: str = "device") -> str:
    """A device at a site of its own."""
    site = a_site(t, "site" if label == "device" else f"site of {label}")
    return t.write("ProbeDeviceUpsert", {**values(name=t.name(label)), "site": peer(site)}).id


def a_port(t: Talk) -> tuple[str, str]:
    """A port ``p1`` and its device."""
    device = a_device(t)
    return t.write("ProbePortUpsert", {**values(name="p1"), "device": peer(device)}).id, device


def a_vlan(t: Talk) -> str:
    """VLAN 7 of a site."""
    site = a_site(t)
    return t.write("ProbeVlanUpsert", {**values(vid=7), "site": peer(site)}).id
