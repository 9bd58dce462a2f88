"""The functions that the migrations make: what the database must hold, word for word.

A trigger of the right name that calls another function, or a function of the right name with another body, refuses
nothing. Functions whose body is one SQL statement (``begin atomic``) are kept by PostgreSQL as a tree that each version
writes down otherwise; of them language and rights are compared, and what they compute is checked by whoever uses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from ledger.store.sql_files import migrations

_DEFINED = re.compile(
    r"^create (?:or replace )?function ledger\.(?P<name>\w+)\s*\((?P<head>.*?)"
    r"^(?:as \$\$(?P<body>.*?)\$\$|begin atomic$)"
    r"|^drop function ledger\.(?P<dropped>\w+)",
    re.DOTALL | re.MULTILINE,
)
_LANGUAGE = re.compile(r"\blanguage (\w+)")
_SETTING = re.compile(r"\bset (\w+) = (.*?)(?=\s+set \w+ =|\s*\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function as PostgreSQL keeps it: body, language, whose rights it has, its own settings."""

    body: str
    language: str
    security_definer: bool
    settings: frozenset[str]


@cache
def defined_functions() -> Mapping[str, SqlFunction]:
    """Every function of the schema ``ledger`` as the last migration that names it leaves it.

    Raises:
        MigrationFileError: a migration cannot be read.
    """
    found: dict[str, SqlFunction] = {}
    for migration in migrations():
        for match in _DEFINED.finditer(migration.text):
            if match["dropped"]:
                found.pop(match["dropped"], None)
            else:
                found[match["name"]] = _function(match["head"], match["body"])
    return found


def _function(head: str, body: str | None) -> SqlFunction:
    language = _LANGUAGE.search(head)
    return SqlFunction(
        body=body or "",
        language=language[1] if language else "sql",
        security_definer="security definer" in head,
        settings=frozenset(f"{name}={value}" for name, value in _SETTING.findall(head)),
    )
