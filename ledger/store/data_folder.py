"""The embedded database's folder: what is in it, whose it is, and the passwords of its roles.

::

    <folder>/                owned by whoever runs apply-ledger; as root 0711, else 0700
        apply-ledger.json    says that this folder is ours
        credentials.json     0600: one random password per role
        owner.lock           held while somebody starts or stops the server
        data/                the cluster (PGDATA), 0700, of the server's account
        socket/              the one socket, 0700, of the server's account
        programs/            a copy of the programs, only where the account cannot reach the originals
        server.log
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from ledger.store.embedded_errors import (
    CredentialsMissingError,
    DataFolderNotWritableError,
    DataFolderUnreachableError,
    ForeignDataFolderError,
)
from ledger.store.system_account import ServerAccount

ROLES = ("admin", "writer", "projector", "reader")
_MARKER = "apply-ledger.json"
_CREDENTIALS = "credentials.json"
_MARKER_DOCUMENT = {"contents": "embedded database of apply-ledger", "layout": 1}

_CONTROL = struct.Struct("=QIIi")
"""How ``pg_control`` begins: identity, version of the file, version of the catalogue, state."""

_SHUT_DOWN = (1, 2)
"""Stopped in service, or while it recovered."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The folder of one embedded database."""

    path: Path

    @property
    def lock(self) -> Path:
        """Held by the process that starts or stops the server."""
        return self.path / "owner.lock"

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.path / "data"

    @property
    def programs(self) -> Path:
        """Parent of copied programs."""
        return self.path / "programs"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.path / "server.log"

    @property
    def credentials_file(self) -> Path:
        """One random password per role."""
        return self.path / _CREDENTIALS

    def is_ours(self) -> bool:
        """Whether the folder carries our marker."""
        try:
            return bool(json.loads((self.path / _MARKER).read_text(encoding="utf-8")) == _MARKER_DOCUMENT)
        except (OSError, ValueError):
            return False

    def major_version(self) -> int | None:
        """The major version that made the cluster, or nothing when there is none yet."""
        try:
            return int((self.data / "PG_VERSION").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None

    def was_shut_down(self) -> bool:
        """Whether the cluster's own record says that its last server was stopped, and did not just end.

        The record begins with two versions of formats behind the cluster's identity; the state is after those.
        """
        try:
            head = (self.data / "global" / "pg_control").read_bytes()[: _CONTROL.size]
        except OSError:
            return False
        return len(head) == _CONTROL.size and _CONTROL.unpack(head)[3] in _SHUT_DOWN

    def prepare(self, account: ServerAccount) -> None:
        """Make the folder, or make sure that the one that is there is ours and usable.

        Raises:
            ForeignDataFolderError: somebody else's, or it holds something that is not ours.
            DataFolderNotWritableError: it cannot be made or written.
            DataFolderUnreachableError: the server's account cannot get there.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise self._not_writable(exc.strerror or type(exc).__name__) from exc
        self.require_ours_or_empty()
        mine = ServerAccount(name="self", uid=os.geteuid(), gid=os.getegid())
        try:
            mine.write_private(self.path / _MARKER, json.dumps(_MARKER_DOCUMENT) + "\n")
            self.path.chmod(0o711 if account.uid != mine.uid else 0o700)
        except OSError as exc:
            raise self._not_writable(exc.strerror or type(exc).__name__) from exc
        if not account.can_enter(self.path):
            raise DataFolderUnreachableError(
                checked=f"whether the account {account.name!r} can enter {self.path}",
                expected="a folder below parents that all accounts may pass through",
                found="a parent that is closed to it; apply-ledger never opens folders that it did not make",
                next_action="choose another data folder, such as /var/lib/apply-ledger, or run as an ordinary user",
            )

    def require_ours_or_empty(self) -> None:
        """Refuse a folder with something in it that this project did not put there.

        Raises:
            ForeignDataFolderError: as said.
        """
        try:
            owner = self.path.stat().st_uid
            names = sorted(entry.name for entry in self.path.iterdir() if not entry.name.startswith(".new-"))
        except PermissionError as exc:
            raise self._foreign("a folder that may not be read") from exc
        except NotADirectoryError as exc:
            raise self._foreign("a file") from exc
        if owner != os.geteuid():
            raise self._foreign(f"a folder of the user with number {owner}")
        if names and not self.is_ours():
            raise self._foreign(f"a folder without {_MARKER} that holds {', '.join(names[:3])}")

    def remove_leftovers(self) -> None:
        """Remove what an interrupted ``initdb`` or copy left. Only under the lock."""
        for pattern in (".initdb-*", "programs/.copy-*"):
            for path in self.path.glob(pattern):
                shutil.rmtree(path, ignore_errors=True)

    def credentials(self) -> dict[str, str]:
        """The password of each role, made at the first call, before there is a cluster.

        Raises:
            CredentialsMissingError: there is a cluster, and no readable file.
        """
        path = self.credentials_file
        if not path.exists() and self.major_version() is None:
            made = {role: secrets.token_urlsafe(32) for role in ROLES}
            mine = ServerAccount(name="self", uid=os.geteuid(), gid=os.getegid())
            mine.write_private(path, json.dumps(made) + "\n")
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return {role: str(found[role]) for role in ROLES}
        except (OSError, ValueError, KeyError, TypeError) as exc:
            raise CredentialsMissingError(
                checked=f"the passwords of the embedded database, {path}",
                expected=f"a JSON object with {', '.join(ROLES)}",
                found=type(exc).__name__,
                next_action="restore that file from the backup of the data folder",
            ) from exc

    def _foreign(self, found: str) -> ForeignDataFolderError:
        return ForeignDataFolderError(
            checked=f"the data folder of the embedded database, {self.path}",
            expected="an empty folder, or one that apply-ledger made for this user",
            found=found,
            next_action="choose another folder; nothing was changed in this one",
        )

    def _not_writable(self, found: str) -> DataFolderNotWritableError:
        return DataFolderNotWritableError(
            checked=f"the data folder of the embedded database, {self.path}",
            expected="a folder that can be made and written",
            found=found,
            next_action="choose another folder, or set APPLY_LEDGER_DSN to another PostgreSQL",
        )
