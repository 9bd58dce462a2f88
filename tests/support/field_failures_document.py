"""Makes ``docs/field-failures.md`` from the catalogue ``docs/field-failures.toml`` and the names of the tests.

A test belongs to a kind by its name, ``test_ff07_…``; names are read from the source text, so that no test has to be
imported. ``python -m tests.support.field_failures_document`` writes the page; a test fails while the page is stale.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "docs" / "field-failures.toml"
PAGE = ROOT / "docs" / "field-failures.md"
OWN_TESTS = "tests/field_failures/"
NUMBERS = [f"FF{number:02}" for number in range(1, 41)]

_NAME = re.compile(r"test_ff(\d\d)_\w+")


@dataclass(frozen=True)
class FieldFailure:
    number: str
    title: str
    owed: str


def read_catalogue() -> tuple[dict[str, FieldFailure], list[str]]:
    """All kinds by number, and those that may still be without a test of their own."""
    document: dict[str, Any] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    kinds = {number: FieldFailure(number, entry["title"], entry["owed"]) for number, entry in document["kinds"].items()}
    return kinds, document["still_open"]


def collect_tests(tests: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Number of a kind to the tests that carry it, as ``tests/field_failures/x.py::test_ff07_name``, own ones first."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(tests.rglob("test_*.py"), key=lambda path: (OWN_TESTS not in path.as_posix(), path)):
        for name in _test_names(ast.parse(path.read_text(encoding="utf-8"))):
            match = _NAME.fullmatch(name)
            if match is not None:
                found[f"FF{match[1]}"].append(f"{path.relative_to(tests.parent).as_posix()}::{name}")
    return dict(found)


def _test_names(tree: ast.Module) -> list[str]:
    """Functions that pytest collects: of the module, and of its classes."""
    scopes = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    return [node.name for body in scopes for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def without_own_test(found: dict[str, list[str]]) -> list[str]:
    """The kinds that no test in ``tests/field_failures`` shows; tests elsewhere show parts and do not count."""
    return [number for number in NUMBERS if not any(test.startswith(OWN_TESTS) for test in found.get(number, ()))]


def render() -> str:
    """The whole page."""
    kinds, still_open = read_catalogue()
    found = collect_tests()
    lines = [
        "# Field failures",
        "",
        "Kinds of failure that people reported in public of tools that synchronise and apply, what this project owes"
        " in each case, and the tests that show it. Made by `make rules` from `docs/field-failures.toml` and the names"
        " of the tests; do not edit.",
        "",
        f"{len(NUMBERS)} kinds, {len(still_open)} open" + (f": {', '.join(still_open)}." if still_open else "."),
        "",
        "| kind | what goes wrong | what is owed | shown by |",
        "| --- | --- | --- | --- |",
        *(_row(kinds[number], found.get(number, [])) for number in NUMBERS),
    ]
    return "\n".join(lines) + "\n"


def _row(kind: FieldFailure, tests: list[str]) -> str:
    return f"| {kind.number} | {kind.title} | {kind.owed} | {'<br>'.join(map(_link, tests)) or '**open**'} |"


def _link(test: str) -> str:
    path, _, name = test.partition("::")
    return f"[`{path.removeprefix('tests/')}::{name}`](../{path})"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
