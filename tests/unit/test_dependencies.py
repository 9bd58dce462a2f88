"""What the packages import is declared as a dependency: a user's environment has nothing of what only tests need."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = ("ledger", "producers", "consumers")


def _imported() -> Iterator[tuple[str, str]]:
    """Each file and the package outside the standard library that it imports."""
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_bytes())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
                    names = [node.module]
                for name in names:
                    top = name.partition(".")[0]
                    if top not in sys.stdlib_module_names and top not in OURS:
                        yield str(path.relative_to(ROOT)), top


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_that_is_imported_is_a_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {_plain(match[0]) for text in project["dependencies"] if (match := re.match(r"[\w.-]+", text))}
    known = packages_distributions()
    imported = list(_imported())
    assert {"asyncpg", "pyarrow", "infrahub_sdk"} <= {top for _, top in imported}
    undeclared = {(path, top) for path, top in imported if not declared & {_plain(name) for name in known[top]}}
    assert undeclared == set()
