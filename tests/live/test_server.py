"""The live server itself: it is the version that we pin, and holds the schema that every test takes for granted."""

from __future__ import annotations

import tomllib

import httpx
import pytest

from tests.live.infrahub import LiveInfrahub
from tests.live.server.installation import PINS

pytestmark = pytest.mark.live


def test_the_server_is_the_pinned_version(live_infrahub: LiveInfrahub) -> None:
    found = httpx.get(f"{live_infrahub.url}/api/info", trust_env=False).json()["version"]
    assert f"infrahub-server=={found}" in tomllib.loads(PINS.read_text(encoding="utf-8"))["packages"]
