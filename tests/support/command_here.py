"""The program called in this process: what it prints and how it ends, without the second that a process costs."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

import pytest

from ledger.cli.main import main
from tests.support.command_line import TOKEN, CommandLine


@dataclass(frozen=True)
class CommandHere:
    """The program in the folder and environment of a :class:`CommandLine`."""

    cli: CommandLine
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """One call; the destination's token is nowhere in what it says."""
        wanted = {**self.cli.environment, **environment}
        with self.monkeypatch.context() as patched:
            patched.chdir(self.cli.folder)
            for name in os.environ.keys() - wanted.keys():
                patched.delenv(name)
            for name, value in wanted.items():
                patched.setenv(name, value)
            self.capsys.readouterr()
            code = main(arguments)
            said = self.capsys.readouterr()
        assert TOKEN not in said.out + said.err
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)
