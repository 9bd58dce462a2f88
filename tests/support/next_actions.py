"""What each refusal tells people to do next, read from the source: every literal ``next_action=`` beside its class.

A part that is filled in when the refusal is raised is shown as ``…``. Where a class gets its words from a table or a
parameter, no literal stands beside it; the table of database states is read as data, the rest is in
``docs/refusals.toml``, where the words of a base class hold for every class below it.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from consumers.infrahub.classification import TABLE
from ledger.errors import ApplyLedgerError
from ledger.store.sqlstates import OWN_STATES, STANDARD_STATES

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = ROOT / "docs" / "refusals.toml"
PACKAGES = ("ledger", "producers", "consumers")


def advice_of(item: type[ApplyLedgerError], found: dict[str, list[str]]) -> list[str]:
    """What one class may advise: its own words, else those that hold for the nearest class above it."""
    return next((found[above.__name__] for above in item.__mro__ if above.__name__ in found), [])


def next_actions() -> dict[str, list[str]]:
    """Name of a class to the different things that it may advise, in the order of the source."""
    found: dict[str, list[str]] = defaultdict(list)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in _sources()]
    public = {name: text for tree in trees for name, text in _constants(tree).items() if not name.startswith("_")}
    for tree in trees:
        constants = public | _constants(tree)
        for name, call in _raised(tree):
            for keyword in call.keywords:
                if keyword.arg == "next_action":
                    found[name] += _texts(keyword.value, constants)
    for meaning in (*OWN_STATES.values(), *STANDARD_STATES.values()):
        found[meaning.error.__name__].append(meaning.next_action)
    for row in TABLE:
        if row.error is not None:
            found[row.error.__name__].append(row.next_action)
    for name, text in by_hand().items():
        found[name].append(text)
    return {name: list(dict.fromkeys(texts)) for name, texts in found.items() if texts}


def by_hand() -> dict[str, str]:
    """What stands in ``docs/refusals.toml``."""
    table: dict[str, str] = tomllib.loads(BY_HAND.read_text(encoding="utf-8"))["next_action"]
    return table


def _sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _constants(tree: ast.Module) -> dict[str, str]:
    """Names of a module that are bound to one text."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            texts = _texts(node.value, {})
            if len(texts) == 1:
                found[node.targets[0].id] = texts[0]
    return found


def _raised(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each call that makes an error, with the name of its class; a class's own call of its base counts as its."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _name(node.func).endswith("Error"):
            yield _name(node.func), node
        elif isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call) and _name(inner.func) == "__init__":
                    yield node.name, inner


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.expr, constants: dict[str, str]) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return ["".join(_part(value, constants) for value in values)]
        case ast.Name(id=name) if name in constants:
            return [constants[name]]
        case ast.IfExp(body=one, orelse=other):
            return [*_texts(one, constants), *_texts(other, constants)]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [one + other for one in _texts(left, constants) for other in _texts(right, constants)]
    return []


def _part(node: ast.expr, constants: dict[str, str]) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    inner = node.value if isinstance(node, ast.FormattedValue) else node
    return constants.get(inner.id, "…") if isinstance(inner, ast.Name) else "…"
