"""The versions of the live server are the same wherever a person meets them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.live.server.installation import POM, read_pins

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
PROFILE = {name: service for name, service in COMPOSE["services"].items() if service.get("profiles") == ["infrahub"]}


def pinned() -> tuple[str, str]:
    """Of Infrahub and of Neo4j."""
    (infrahub,) = [pin.partition("==")[2] for pin in read_pins()["packages"] if pin.startswith("infrahub-server==")]
    neo4j = re.search(r"<neo4j.version>(.+)</neo4j.version>", POM.read_text(encoding="utf-8"))
    assert neo4j is not None
    return infrahub, neo4j[1]


def test_the_compose_profile_starts_the_pinned_versions() -> None:
    infrahub, neo4j = pinned()
    images = {name: str(service["image"]) for name, service in PROFILE.items()}
    assert {name for name, image in images.items() if image.endswith(f"/infrahub:{infrahub}")} == {
        "infrahub",
        "infrahub-worker",
        "infrahub-workflows",
    }
    assert images["infrahub-database"] == f"neo4j:{neo4j}-community"


def test_g12_the_compose_file_holds_no_password_and_publishes_on_loopback_alone() -> None:
    for service in COMPOSE["services"].values():
        assert all(str(port).startswith("127.0.0.1:") for port in service.get("ports", ()))
        for name, value in service.get("environment", {}).items():
            if re.search("PASS|TOKEN|SECRET|AUTH", name):
                assert re.fullmatch(r"(neo4j/)?\$\{[A-Z_]+:[-?].*\}", str(value)), name
                assert not re.search(r":-.+\}", str(value)), f"{name} has a default"


def test_the_page_names_the_pinned_versions() -> None:
    page = (ROOT / "docs/live-infrahub.md").read_text(encoding="utf-8")
    infrahub, neo4j = pinned()
    assert f"Infrahub {infrahub} on Neo4j {neo4j}" in page
