"""The API of Infrahub as one process; runs in the server's own environment, never in the tests'.

The server's package is not changed. Its own local workflow driver and bus simulator take the place of task worker and
message bus; a cache in memory and its own in-process locks take the place of Redis. Everything else comes from
``INFRAHUB_*`` variables, which the starter sets.
"""

from __future__ import annotations

import fnmatch
import sys
import time
from typing import Any

import uvicorn
from infrahub import config
from infrahub.lock import initialize_lock
from infrahub.services.adapters.cache import InfrahubCache
from infrahub.services.adapters.message_bus.local import BusSimulator

from tests.live.server.bolt import wait_for_bolt


class MemoryCache(InfrahubCache):  # type: ignore[misc]  # the server's package has no types here
    """The server's cache interface over a dict, with expiry."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[str, float | None]] = {}

    async def delete(self, key: str) -> None:
        """Forget a key."""
        self._entries.pop(key, None)

    async def get(self, key: str) -> str | None:
        """The value of a key that has not expired."""
        value, until = self._entries.get(key, (None, None))
        if until is not None and until < time.time():
            self._entries.pop(key, None)
            return None
        return value

    async def get_values(self, keys: list[str]) -> list[str | None]:
        """The values of several keys."""
        return [await self.get(key) for key in keys]

    async def list_keys(self, filter_pattern: str) -> list[str]:
        """The living keys that match a glob pattern."""
        return [key for key in list(self._entries) if fnmatch.fnmatch(key, filter_pattern) and await self.get(key)]

    async def set(self, key: str, value: str, expires: Any = None, not_exists: bool = False) -> bool | None:
        """Store a value; with ``not_exists`` only where there is none."""
        if not_exists and await self.get(key) is not None:
            return None
        self._entries[key] = (value, time.time() + int(expires) if expires else None)
        return True

    async def close_connection(self) -> None:
        """There is none."""


def main() -> None:
    """Serve on the first port of the arguments, on the database at the second, until a signal comes."""
    config.OVERRIDE.cache = MemoryCache()
    config.OVERRIDE.message_bus = BusSimulator()

    # imported after the overrides: the module builds its application while it is imported
    import infrahub.server as server

    server.initialize_lock = lambda service=None: initialize_lock(local_only=True)
    port, bolt = map(int, sys.argv[1:])
    wait_for_bolt(bolt, seconds=120)  # without a database the server ends at once; its imports took some seconds
    uvicorn.run(server.app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
