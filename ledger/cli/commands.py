"""Maps commands to modules, so that a call imports only the module that it needs.

All of them together take a third of a second to import, which every ``plan`` and ``apply`` would wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

COMMANDS: Mapping[str, Sequence[str]] = {
    "plan_commands": ("plan", "show"),
    "rehearse_command": ("rehearse",),
    "commit_commands": ("commit", "apply", "resume", "stop"),
    "run_commands": ("runs",),
    "replay_command": ("replay",),
    "audit_commands": ("verify", "rebuild"),
    "history_commands": ("history", "blame"),
    "checkpoint_commands": ("checkpoint",),
    "export_commands": ("export", "prove"),
    "doctor_command": ("doctor",),
    "service_commands": ("work", "up", "down", "migrate"),
    "api_commands": ("serve", "token"),
    "kafka_commands": ("kafka",),
    "sandbox_command": ("sandbox",),
}
"""Commands by module of this package, in the order in which the help lists them."""

_WITH_A_VALUE = "--config"
_ALONE = ("--verbose", "-v")


def command_of(arguments: Sequence[str]) -> str | None:
    """The command that is called; None where the global options before it are none that are known here."""
    left = list(arguments)
    while left:
        first = left.pop(0)
        if first == _WITH_A_VALUE:
            del left[:1]
        elif first not in _ALONE and not first.startswith(f"{_WITH_A_VALUE}="):
            return first
    return None


def modules(arguments: Sequence[str]) -> list[ModuleType]:
    """The modules that a call needs: that of its command, or all, for help and for words that are no command."""
    called = command_of(arguments)
    wanted = [name for name, commands in COMMANDS.items() if called in commands]
    return [import_module(f"ledger.cli.{name}") for name in wanted or COMMANDS]
