"""Makes ``docs/rules.md`` from the catalogue ``docs/rules.toml`` and the ``rules`` markers of the tests.

Markers are read from the source text, so that no test has to be imported and nothing can hide one. ``python -m
tests.support.rules_document`` writes the page; a test fails while the page is stale.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "docs" / "rules.toml"
PAGE = ROOT / "docs" / "rules.md"
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


def read_catalogue() -> tuple[dict[str, Rule], int]:
    """All rules by number, and how many of them may be open."""
    document: dict[str, Any] = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    rules = {
        number: Rule(number, entry["says"], entry.get("departs"), entry.get("nothing_to_show"))
        for number, entry in document["rules"].items()
    }
    return rules, document["open_limit"]


def expected_numbers() -> list[str]:
    return [f"{series}{n}" for series, last in SERIES.items() for n in range(1, last + 1)]


def collect_proofs(tests: Path = ROOT / "tests") -> dict[str, list[str]]:
    """Rule number to the tests that carry it, as ``tests/unit/x.py::test_name``."""
    proofs: dict[str, list[str]] = defaultdict(list)
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inherited = _module_rules(tree)
        for node, scope in _functions(tree):
            numbers = [*inherited, *scope, *_rules_of(node.decorator_list)]
            for number in dict.fromkeys(numbers):
                proofs[number].append(f"{path.relative_to(ROOT)}::{node.name}")
    return dict(proofs)


def _functions(tree: ast.Module) -> list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[str]]]:
    found: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, list[str]]] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            scope = _rules_of(node.decorator_list)
            found += [(item, scope) for item in node.body if _is_test(item)]  # type: ignore[misc]  # narrowed by _is_test
        elif _is_test(node):
            found.append((node, []))  # type: ignore[arg-type]  # narrowed by _is_test
    return found


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")


def _module_rules(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            value = node.value
            return _rules_of(value.elts if isinstance(value, ast.List | ast.Tuple) else [value])
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
    proofs = collect_proofs()
    still_open = open_rules(rules, proofs)
    lines = [
        "# Rules and where they are proven",
        "",
        "Made by `make rules` from `docs/rules.toml` and the `rules` markers of the tests; do not edit.",
        "",
        f"{len(expected_numbers())} rules, {len(still_open)} open"
        + (f": {', '.join(still_open)}." if still_open else "."),
    ]
    for series, title in TITLES.items():
        lines += ["", f"## {series}: {title}", "", "| rule | says | proven by |", "| --- | --- | --- |"]
        lines += [_row(rules[f"{series}{n}"], proofs) for n in range(1, SERIES[series] + 1)]
    return "\n".join(lines) + "\n"


def _row(rule: Rule, proofs: dict[str, list[str]]) -> str:
    says = rule.says + (f" **Departs:** {rule.departs}" if rule.departs else "")
    tests = proofs.get(rule.number, [])
    shown = [f"`{test.removeprefix('tests/')}`" for test in tests[:3]]
    if len(tests) > len(shown):
        shown.append(f"and {len(tests) - len(shown)} more")
    if rule.nothing_to_show:
        shown.append(f"*nothing to show:* {rule.nothing_to_show}")
    return f"| {rule.number} | {says} | {'<br>'.join(shown) or '**open**'} |"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    sys.stdout.write(f"wrote {PAGE.relative_to(ROOT)}\n")
