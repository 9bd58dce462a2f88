"""Makes ``docs/refusals.md``: every refusal class of the project, its exit code, its first sentence and its advice.

``python -m tests.support.refusals_document`` writes the page; a test fails while the page is stale.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import consumers
import ledger
import producers
from ledger.errors import ApplyLedgerError
from tests.support.next_actions import advice_of, next_actions

PAGE = Path(__file__).resolve().parents[2] / "docs" / "refusals.md"
MOST_ADVICE = 4


def refusals() -> list[type[ApplyLedgerError]]:
    """Every class below :class:`ApplyLedgerError` that the three packages define, by name."""
    for package in (ledger, producers, consumers):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    found: set[type[ApplyLedgerError]] = set()
    waiting = [ApplyLedgerError]
    while waiting:
        for below in waiting.pop().__subclasses__():
            if below not in found and below.__module__.split(".")[0] in ("ledger", "producers", "consumers"):
                found.add(below)
                waiting.append(below)
    return sorted(found, key=lambda item: (item.__name__, item.__module__))


def first_sentence(item: type[ApplyLedgerError]) -> str:
    text = " ".join((item.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".").replace("|", "\\|")


def shown_refusals(advice: dict[str, list[str]]) -> list[type[ApplyLedgerError]]:
    """What a person can meet: no private class, and no class that only stands above others."""
    return [
        item
        for item in refusals()
        if not item.__name__.startswith("_") and (item.__name__ in advice or not item.__subclasses__())
    ]


def _told(texts: list[str]) -> str:
    shown = [text.replace("|", "\\|") for text in texts[:MOST_ADVICE]]
    return "<br>".join([*shown, *(["… as the message says"] if len(texts) > MOST_ADVICE else [])])


def render() -> str:
    lines = [
        "# Refusals",
        "",
        "Made by `make rules` from the classes themselves; do not edit. Each refusal prints what was checked, what was"
        " expected, what was found, and what to do next; the last column has the words for it, with `…` for what is"
        " filled in.",
        "",
        "| refusal | exit code | says | what to do |",
        "| --- | ---: | --- | --- |",
    ]
    advice = next_actions()
    rows = [
        f"| `{item.__name__}` | {item.exit_code.value} | {first_sentence(item)} | {_told(advice_of(item, advice))} |"
        for item in shown_refusals(advice)
    ]
    return "\n".join([*lines, *dict.fromkeys(rows)]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write("wrote docs/refusals.md\n")
