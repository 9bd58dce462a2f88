"""Cache of fetched schemas, so that an unchanged schema is not fetched again.

A server takes half a second to write its schema down, and twenty milliseconds to say the hash of it. The hash is that
of the content, ids included, so a schema that is kept under the server's address and this hash is the live one. It is
kept in this process, and in a folder of this user where there is one: ``plan`` and ``apply`` are two processes. What is
kept is what infrahub-sdk made of the server's answer and we of that, so another version of either fetches again.

Nothing depends on it. What cannot be read, is not whole, or is not this user's alone to write, is fetched.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

from ledger.errors import ApplyLedgerError
from ledger.plan.files import open_regular, write_durably
from ledger.schema import DestinationSchema, parse_schema

FORMAT = 1
"""Of the kept document. To be raised with every change of what is kept of a schema: older files are then left alone."""

_IN_MEMORY = 4
_IN_FOLDER = 16
"""Files that are kept, the youngest: a server's schema changes seldom, and one takes a megabyte."""

_MAX_BYTES = 64 * 1024 * 1024
_DIGEST = 64
"""Characters of the digest that a file begins with."""

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH


@dataclass
class KnownSchemas:
    """Schemas by server and hash; ``folder`` is made when the first one is kept, None keeps them in this process only.

    One object may serve any number of destinations, in one event loop.
    """

    folder: Path | None = None
    _memory: OrderedDict[str, DestinationSchema] = field(default_factory=OrderedDict)

    def find(self, url: str, version: str) -> DestinationSchema | None:
        """The schema of that server with that hash, where it is known."""
        name = _name(url, version)
        found = self._memory.get(name) or self._read(name, version)
        if found is not None:
            self._remember(name, found)
        return found

    def keep(self, url: str, document: Mapping[str, Any], schema: DestinationSchema) -> None:
        """Remember a schema that was fetched just now, under the hash that it carries; one without is not kept."""
        if not schema.hash:
            return
        name = _name(url, schema.hash)
        self._remember(name, schema)
        folder = self.folder
        if folder is None:
            return
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        with suppress(ApplyLedgerError, OSError):  # a full disk, a folder that may not be written: it is fetched again
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_ours(folder):
                write_durably(folder / name, _digest(body).encode() + body)
                (folder / name).chmod(0o600)  # whatever the umask: one that others may write is not read
                _tidy(folder)

    def _remember(self, name: str, schema: DestinationSchema) -> None:
        self._memory[name] = schema
        self._memory.move_to_end(name)
        while len(self._memory) > _IN_MEMORY:
            self._memory.popitem(last=False)

    def _read(self, name: str, version: str) -> DestinationSchema | None:
        if self.folder is None:
            return None
        try:
            content = _own_content(self.folder / name) if _is_ours(self.folder) else None
            if content is None or content[:_DIGEST] != _digest(content[_DIGEST:]).encode():
                return None
            schema = parse_schema(json.loads(content[_DIGEST:]))
        except (ApplyLedgerError, OSError, ValueError, RecursionError):
            return None
        return schema if schema.hash == version else None


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can put a schema into the folder: the checks of a plan follow what it says."""
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and _only_we_write(found)


def _own_content(path: Path) -> bytes | None:
    """What is in the file, if nobody else could have written it: the folder may have been open to others once."""
    file = open_regular(path)
    if file is None:
        return None
    with file:
        found = os.fstat(file.fileno())
        return file.read() if _only_we_write(found) and found.st_size <= _MAX_BYTES else None


def _only_we_write(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & _OTHERS_MAY_WRITE


def _tidy(folder: Path) -> None:
    by_age = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in by_age[_IN_FOLDER:]:
        path.unlink(missing_ok=True)


def _name(url: str, version: str) -> str:
    return _digest(f"{FORMAT}\n{installed_version('infrahub-sdk')}\n{url}\n{version}".encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
