"""The page for auditors names every audit with its command, its function and its address; all of them are there."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from ledger.api.rights import BASE, RIGHTS
from ledger.cli.commands import COMMANDS

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "audit.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("| question | command |") :].split("\n\n")[0].splitlines()[2:]
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE]


def _code(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def _bare(path: str) -> str:
    """An address without the names of its parts, which the page says in words of people."""
    return re.sub(r"\{[^}]*\}", "{}", path)


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_every_way_that_is_named_is_there(row: list[str]) -> None:
    _, command, function, http = row
    assert {text.split()[0] for text in _code(command)} <= {name for names in COMMANDS.values() for name in names}
    for dotted in _code(function):
        module, _, name = dotted.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        assert found.__doc__
    known = {_bare(path) for _, path in RIGHTS}
    told = _code(http)
    assert told or http.startswith("not")
    for text in told:
        path = _bare(text.split()[-1])
        assert any(address.endswith(path.lstrip("…")) for address in known if path.startswith(("…", BASE))), text


def test_every_audit_over_http_is_named() -> None:
    told = {_bare(text.split()[-1]).lstrip("…") for row in ROWS for text in _code(row[3])}
    audits = [
        path
        for method, path in RIGHTS
        if "checkpoint" in path or "state" in path or (method == "POST" and "verify" in path)
    ]
    audits += [path for _, path in RIGHTS if path.endswith(("/export", "{operation_id}"))]
    assert [path for path in audits if not any(_bare(path).endswith(end) for end in told)] == []


def test_the_names_of_the_example_are_there() -> None:
    [example] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    imports = [node for node in ast.walk(ast.parse(example)) if isinstance(node, ast.ImportFrom)]
    assert len(imports) == 4
    for node in imports:
        for name in node.names:
            assert hasattr(importlib.import_module(str(node.module)), name.name), name.name
