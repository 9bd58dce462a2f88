"""The page about what runs out names tests that exist, and names each test that was made for it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "resources.md"
_NAMED = re.compile(r"`([a-z_0-9/]+\.py)(?:::(test_[a-z_0-9]+))?`")


def _tests_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions) and node.name.startswith("test_")}


def _named() -> list[tuple[str, str]]:
    return _NAMED.findall(PAGE.read_text(encoding="utf-8"))


def test_every_named_test_exists() -> None:
    named = _named()
    assert named
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (TESTS / file).is_file() or (test and test not in _tests_of(TESTS / file))
    ]
    assert missing == []


def test_every_row_names_a_test() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    bare = [row for row in rows if not row.startswith(("| what ", "| ---")) and not _NAMED.search(row)]
    assert bare == []


def test_every_test_of_a_service_that_runs_short_has_its_row() -> None:
    named = {test for _, test in _named()}
    about_words = {
        "test_a_shortage_is_told_from_everything_else_whatever_library_met_it",
        "test_a_defect_or_a_refusal_is_never_taken_for_a_shortage",
        "test_a_connection_that_broke_for_want_of_memory_is_told_from_one_that_the_other_end_broke",
        "test_g11_a_command_that_lost_its_ledger_says_whose_fault_that_was",
    }
    made = set().union(*(_tests_of(path) for path in (TESTS / "resources").glob("test_*.py")))
    assert made - named - about_words == set()
