"""Finds the SQL files: ``sql/`` of the checkout, ``ledger/store/sql`` of an installed wheel."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ledger.store.errors import MigrationFileError

_NAME = re.compile(r"^[0-9]{4}_[a-z0-9_]+\.sql$")
_HEADER = "-- migrate:up"
_BLOCK = re.compile(r"^-- name: (?P<name>[a-z0-9_]+)\n", re.MULTILINE)


def sql_folder() -> Path:
    """The folder with the migrations and, below it, the queries."""
    packaged = Path(__file__).with_name("sql")
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "sql"


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file. ``checksum`` is sha256 over its bytes."""

    version: str
    text: str
    checksum: bytes


def migrations(folder: Path | None = None) -> tuple[Migration, ...]:
    """All migration files in order.

    Raises:
        MigrationFileError: a name that is not ``0001_subject.sql``, two files with one number, no header.
    """
    found = [_read(path) for path in sorted((folder or sql_folder()).glob("*.sql"))]
    numbers = [migration.version[:4] for migration in found]
    for number in numbers:
        if numbers.count(number) > 1:
            raise _refused(number, "a number of its own", f"{numbers.count(number)} files with this number")
    if not found:
        raise _refused(str(folder or sql_folder()), "migration files", "none")
    return tuple(found)


def _read(path: Path) -> Migration:
    data = path.read_bytes()
    if not _NAME.match(path.name):
        raise _refused(path.name, "a name like 0001_subject.sql", "another name")
    text = data.decode("utf-8")
    if text.split("\n", 1)[0] != _HEADER:
        raise _refused(path.name, f"{_HEADER!r} alone as its first line", "another first line")
    return Migration(version=path.stem, text=text, checksum=hashlib.sha256(data).digest())


def _refused(what: str, expected: str, found: str) -> MigrationFileError:
    return MigrationFileError(
        checked=f"the migration file {what}",
        expected=expected,
        found=found,
        next_action="correct the file, or reinstall this program",
    )


@cache
def query(name: str) -> str:
    """The text of the named block in ``sql/queries/*.sql``."""
    return _queries()[name]


@cache
def _queries() -> dict[str, str]:
    blocks: dict[str, str] = {}
    for path in sorted((sql_folder() / "queries").glob("*.sql")):
        parts = _BLOCK.split(path.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in blocks:
                raise _refused(path.name, "a name of its own for each query", f"{name!r} twice")
            blocks[name] = text.strip()
    return blocks
