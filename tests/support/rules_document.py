"""Makes ``docs/rules.md`` from the catalogue ``docs/rules.toml`` and the ``rules`` markers of the tests.

Markers are read from the source text, so that no test has to be imported and nothing can hide one. A proof on a real
server is a test that ``make live`` runs: one below its folders that is marked ``live``, by itself, by its module or by
a fixture that it uses. ``python -m tests.support.rules_document`` writes the page; a test fails while it is stale.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "docs" / "rules.toml"
PAGE = ROOT / "docs" / "rules.md"
SHOWN = 3
"""Tests that are named for a rule on either side; how many more there are is said."""
SERIES = {"G": 12, "P": 149, "A": 92, "C": 57, "H": 32}
TITLES = {
    "G": "Guarantees",
    "P": "Planned writes and apply",
    "A": "The saved plan artifact",
    "C": "Cache layout",
    "H": "What a plan holds",
}


@dataclass(frozen=True)
class Rule:
    number: str
    says: str
    departs: str | None
    nothing_to_show: str | None
    not_on_a_server: str | None = None
    """Why a real server has nothing to show of it, although a test elsewhere has."""


@dataclass(frozen=True)
class Proof:
    """A test that carries a rule's number."""

    test: str
    """As ``tests/unit/x.py::test_name``."""
    is_live: bool
    """Whether ``make live`` runs it."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_catalogue() -> tuple[dict[str, Rule], int]:
    """All rules by number, and how many of them may be open."""
    document: dict[str, Any] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    rules = {
        number: Rule(
            number,
            entry["says"],
            entry.get("departs"),
            entry.get("nothing_to_show"),
            entry.get("not_on_a_server"),
        )
        for number, entry in document["rules"].items()
    }
    return rules, document["open_limit"]


def expected_numbers() -> list[str]:
    return [f"{series}{n}" for series, last in SERIES.items() for n in range(1, last + 1)]


def live_folders() -> list[Path]:
    """What ``make live`` collects, as the Makefile says it."""
    said = re.search(r"^LIVE_PATHS = (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    if said is None:
        raise ValueError("the Makefile has no LIVE_PATHS")
    return [ROOT / folder for folder in said[1].split()]


def proofs_of(tests: Path = ROOT / "tests", live: list[Path] | None = None) -> dict[str, list[Proof]]:
    """Rule number to the tests that carry it; ``make live`` runs what is so marked in the folders of ``live``."""
    folders = live_folders() if live is None else live
    proofs: dict[str, list[Proof]] = defaultdict(list)
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        fixtures = _live_fixtures([tree, *_conftests(path, tests)]) if _is_below(path, folders) else None
        inherited, marks = _module_rules(tree), _module_marks(tree)
        for node, decorators in _functions(tree):
            own = [*marks, *decorators, *node.decorator_list]
            is_live = fixtures is not None and (_is_live(own) or bool(_arguments(node) & fixtures))
            for number in dict.fromkeys([*inherited, *_rules_of(decorators), *_rules_of(node.decorator_list)]):
                proofs[number].append(Proof(f"{_shown(path)}::{node.name}", is_live))
    return dict(proofs)


def collect_proofs(tests: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Rule number to the names of the tests that carry it."""
    return {number: [proof.test for proof in proofs] for number, proofs in proofs_of(tests).items()}


def _shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def _is_below(path: Path, folders: list[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _conftests(path: Path, tests: Path) -> list[ast.Module]:
    """The files whose fixtures a test module may use, beside its own."""
    folders = [folder for folder in path.parents if folder.is_relative_to(tests)]
    files = [folder / "conftest.py" for folder in folders]
    return [ast.parse(file.read_text(encoding="utf-8")) for file in files if file.is_file()]


def _live_fixtures(trees: list[ast.Module]) -> set[str]:
    """The fixtures that a real server is one of the parameters of, and those that use one of them."""
    functions = [node for tree in trees for node in tree.body if isinstance(node, Function)]
    fixtures = [node for node in functions if any("fixture" in ast.unparse(item) for item in node.decorator_list)]
    found = {node.name for node in fixtures if _is_live(node.decorator_list)}
    while more := {node.name for node in fixtures if node.name not in found and _arguments(node) & found}:
        found |= more
    return found


def _arguments(node: Function) -> set[str]:
    return {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}


def _is_live(marks: list[ast.expr]) -> bool:
    """Whether the ``live`` marker stands among these, or within one of them."""
    inner = (node for mark in marks for node in ast.walk(mark))
    return any(isinstance(node, ast.Attribute) and ast.unparse(node) == "pytest.mark.live" for node in inner)


def _functions(tree: ast.Module) -> Iterator[tuple[Function, list[ast.expr]]]:
    """Every test, with the decorators of its class."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for item in node.body:
                if isinstance(item, Function) and _is_test(item):
                    yield item, node.decorator_list
        elif isinstance(node, Function) and _is_test(node):
            yield node, []


def _is_test(node: Function) -> bool:
    return node.name.startswith("test_")


def _module_rules(tree: ast.Module) -> list[str]:
    return _rules_of(_module_marks(tree))


def _module_marks(tree: ast.Module) -> list[ast.expr]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            value = node.value
            return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]
    return []


def _rules_of(decorators: list[ast.expr]) -> list[str]:
    numbers: list[str] = []
    for item in decorators:
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Attribute) and item.func.attr == "rules":
            for argument in item.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise TypeError(f"line {item.lineno}: the rules marker takes literal numbers")
                numbers.append(argument.value)
    return numbers


def open_rules(rules: dict[str, Rule], proofs: dict[str, list[str]]) -> list[str]:
    """Numbers with neither a test nor a reason why nothing is to be shown."""
    return [n for n in expected_numbers() if n not in proofs and rules[n].nothing_to_show is None]


def render() -> str:
    """The whole page."""
    rules, _ = read_catalogue()
    proofs = proofs_of()
    still_open = open_rules(rules, collect_proofs())
    lines = [
        "# Rules and where they are proven",
        "",
        "Made by `make rules` from `docs/rules.toml` and the `rules` markers of the tests; do not edit.",
        "",
        "G are the guarantees of the [README](../README.md#what-is-promised). P, A, C and H are the rules of the plan"
        " format of infrahub-sync 2.0 that this project implements: planned writes and apply (P), the saved plan"
        " artifact (A), the layout of run directories (C), the content of a plan (H). **Departs** says where this"
        " project differs on purpose.",
        "",
        f"{len(expected_numbers())} rules, {len(still_open)} open"
        + (f": {', '.join(still_open)}." if still_open else "."),
        "",
        "*On a real server* are tests that `make live` runs against a real Infrahub.",
    ]
    for series, title in TITLES.items():
        head = ["| rule | says | proven by | on a real server |", "| --- | --- | --- | --- |"]
        lines += ["", f"## {series}: {title}", "", *head]
        lines += [_row(rules[f"{series}{n}"], proofs) for n in range(1, SERIES[series] + 1)]
    return "\n".join(lines) + "\n"


def _row(rule: Rule, proofs: dict[str, list[Proof]]) -> str:
    says = rule.says + (f" **Departs:** {rule.departs}" if rule.departs else "")
    found = proofs.get(rule.number, [])
    here = _cell([proof.test for proof in found if not proof.is_live], "nothing to show", rule.nothing_to_show)
    there = _cell([proof.test for proof in found if proof.is_live], "nothing to see", rule.not_on_a_server)
    return f"| {rule.number} | {says} | {here or ('–' if found else '**open**')} | {there or '–'} |"


def _cell(tests: list[str], word: str, why_none: str | None) -> str:
    shown = [f"`{test.removeprefix('tests/')}`" for test in tests[:SHOWN]]
    if len(tests) > len(shown):
        shown.append(f"and {len(tests) - len(shown)} more")
    if why_none:
        shown.append(f"*{word}:* {why_none}")
    return "<br>".join(shown)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
