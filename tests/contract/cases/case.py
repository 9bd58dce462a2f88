"""A case: one short conversation with a server, and the registry of all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tests.contract.cases.talk import Talk

Conversation = Callable[[Talk], None]

_CASES: dict[str, Case] = {}

CASES: Mapping[str, Case] = MappingProxyType(_CASES)
"""Every registered case by its name; :mod:`tests.contract.cases.catalogue` registers them all."""


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation. ``shows`` says what it asks of the server, in words."""

    group: str
    label: str
    shows: str
    hold: Conversation

    @property
    def name(self) -> str:
        """``group/label``: the key of its recorded answers."""
        return f"{self.group}/{self.label}"


def register(made: Case) -> None:
    """Add a case; two of one name would share their recorded answers."""
    if made.name in _CASES:
        raise ValueError(f"two cases are named {made.name}")
    _CASES[made.name] = made


def case(group: str) -> Callable[[Conversation], Conversation]:
    """Register a function as a case: its name is the label, its docstring says what it shows."""

    def decorate(hold: Conversation) -> Conversation:
        register(Case(group, hold.__name__.replace("_", "-"), (hold.__doc__ or "").strip(), hold))
        return hold

    return decorate


def groups() -> Iterator[tuple[str, list[Case]]]:
    """The cases by group, in the order of their registration."""
    by_group: dict[str, list[Case]] = {}
    for made in _CASES.values():
        by_group.setdefault(made.group, []).append(made)
    yield from by_group.items()
