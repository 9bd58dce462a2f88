"""Commands on a test's own database, called in this process: what they print, to be compared with other ways in."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ledger.cli.main import main
from ledger.store import session
from ledger.store.connect import check_server


async def _check_server(connection: Any, *, allow_unsafe_fsync: bool) -> None:
    """Test clusters run without fsync, which a command would refuse."""
    await check_server(connection, allow_unsafe_fsync=True)


@dataclass(frozen=True)
class CommandOnLedger:
    """The program in a folder of its own, whose ledger is a test database and whose keys are in ``keys``."""

    dsns: Mapping[str, str]
    folder: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    @property
    def keys(self) -> Path:
        """The folder of its keys."""
        return self.folder / "keys"

    async def run(self, *arguments: str, code: int = 0) -> str:
        """One command on a thread of its own; what it wrote to stdout."""
        wanted = {
            "APPLY_LEDGER_DSN": self.dsns["writer"],
            "APPLY_LEDGER_CHECKPOINT_KEYS": str(self.keys),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }
        with self.monkeypatch.context() as patched:
            patched.chdir(self.folder)
            for name in os.environ:
                if name.startswith(("INFRAHUB", "APPLY_LEDGER")):
                    patched.delenv(name)
            for name, value in wanted.items():
                patched.setenv(name, value)
            patched.setattr(session, "check_server", _check_server)
            self.capsys.readouterr()
            found = await asyncio.to_thread(main, arguments)
            said = self.capsys.readouterr()
        assert found == code, said.err
        return said.out
