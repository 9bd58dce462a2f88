"""What ``make live`` and its relatives run: every live test, nothing of the user's, nothing that was not asked for."""

from __future__ import annotations

import ast
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = "APPLY_LEDGER_TEST_INFRAHUB_ADDRESS=https://test.example"


def commands(*arguments: str) -> list[str]:
    """What make would run."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("APPLY_LEDGER_", "MAKE"))}
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *arguments],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def paths_of(*arguments: str) -> list[str]:
    """What the one call of pytest among the commands is given."""
    (line,) = (line for line in commands(*arguments) if " -m pytest " in line)
    given = line.partition(" -m pytest ")[2].partition(" -m ")[0]
    return given.split()


def files_with(mark: str) -> list[str]:
    """The test files that use a mark, on a function, a module or a parameter."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    return [
        str(path.relative_to(ROOT))
        for path, text in texts.items()
        if f"mark.{mark}" in text and any(_is_mark(node, mark) for node in ast.walk(ast.parse(text)))
    ]


def _is_mark(node: ast.AST, mark: str) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == mark
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "mark"
    )


def below(paths: list[str], file: str) -> bool:
    return any(file.startswith(f"{path.rstrip('/')}/") for path in paths)


@pytest.mark.parametrize(("target", "mark"), [("live", "live"), ("live-crash", "live_crash")])
def test_each_live_test_is_below_what_the_command_collects(target: str, mark: str) -> None:
    files, paths = files_with(mark), paths_of(target)
    assert files != []
    assert [file for file in files if not below(paths, file)] == []


def test_on_a_server_that_is_named_what_writes_to_its_default_branch_is_asked_for() -> None:
    writing = [file for file in files_with("live") if below(["tests/contract"], file)]
    assert writing != []
    assert [file for file in writing if below(paths_of("live", NAMED), file)] == []
    asked = paths_of("live", NAMED, "APPLY_LEDGER_TEST_INFRAHUB_MAIN=yes")
    assert [file for file in writing if not below(asked, file)] == []


@pytest.mark.parametrize("target", ["live", "live-start", "live-crash", "bench-live"])
def test_what_is_fetched_comes_through_the_users_proxy_and_what_runs_knows_none(target: str) -> None:
    steps = [line for line in commands(target) if " -m tests.live.server " in line]
    installing, *running = steps
    assert " -m tests.live.server install " in installing
    assert "env -u" not in installing
    assert "_proxy" not in installing
    assert running != []
    assert [line for line in running if "_proxy" not in line.partition(" -m tests.live.server ")[0]] == []
