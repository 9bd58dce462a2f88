"""A sandbox's store in a file: whatever was answered is in it, also after ``kill -9``.

The file is a list of lines, each with a digest over itself and the line before it. Its first part is the whole store,
written beside the file and put in its place in one step; behind that, each write that was answered is a line. When a
sandbox starts, it reads the file and writes it again as one whole store. A line that a kill cut off is at the very end
and belongs to a request that nobody was answered; everything else that does not add up is refused by name.

What a power loss takes is not promised: lines are handed to the operating system, not waited for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import filelock

from consumers.infrahub.sandbox.records import Node
from consumers.infrahub.sandbox.store import SandboxStore
from consumers.infrahub.sandbox.store_file_errors import StoreFileBusyError, StoreFileError
from consumers.infrahub.sandbox.store_lines import (
    FORMAT,
    VERSION,
    ReadStore,
    line_digest,
    read_store,
    schema_digest,
    store_error,
    torn,
)
from consumers.infrahub.sandbox.stored_state import Record, branch_record, node_record, restore
from ledger.plan.errors import PlanWriteFailedError
from ledger.plan.files import DurableFile

_REWRITE_FROM = 16 * 1024 * 1024
"""Bytes of answered writes behind the whole store from which on it may be rewritten."""


class StoreFile:
    """One file, and the store that it keeps from :meth:`attach` on. Use :func:`store_file`."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        """Read the file, where there is one.

        Raises:
            StoreFileError: one class below it for each reason.
        """
        self._path = path
        self._schema = schema_digest(document)
        self._held = read_store(path, self._schema)
        self._file: IO[bytes] | None = None
        self._previous = ""
        self._base = self._behind = 0
        self._changed: dict[str, dict[str, None]] = {}
        self._known: set[str] = set()
        self._used = 0

    @property
    def seed(self) -> str | None:
        """The seed that the kept store was made with; None if there is none yet."""
        return self._held.seed

    @property
    def objects(self) -> int:
        """How many objects were kept."""
        return len(self._held.nodes)

    @property
    def lost_unanswered(self) -> bool:
        """Whether a write was cut off that nobody had been answered."""
        return self._held.cut_off

    def attach(self, store: SandboxStore, seed: str) -> None:
        """Restore a fresh store, then keep it.

        Raises:
            StoreFileTornError: a record is no object of the schema.
            StoreFileError: the file cannot be written.
        """
        if self._held.seed is not None:
            nodes = ((branch, record) for (branch, _), record in self._held.nodes.items())
            try:
                restore(
                    store,
                    self._held.branches,
                    nodes,
                    used_ids=self._held.used_ids,
                    sequence=self._held.sequence,
                )
            except (LookupError, TypeError, ValueError) as exc:
                raise torn(self._path, f"a record that is no object of the schema ({type(exc).__name__})") from exc
        self._store, self._seed = store, seed
        self._held = ReadStore(seed=seed)
        self._rewrite()

    def save(self) -> None:
        """Hand everything that changed since the last time to the operating system.

        Raises:
            StoreFileError: it does not take it; what was written may not be answered as written.
        """
        with self._store.lock:
            names = self._store.branches.keys()
            if not self._changed and names == self._known and len(self._store.used_ids) == self._used:
                return
            if self._file is None or self._behind > max(4 * self._base, _REWRITE_FROM):
                self._rewrite()
                return
            line = self._line(self._write_record())
            self._watch_all()
        self._append(line)

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        if self._file is not None:
            self.save()
        self._let_go()

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    # --- writing

    def _append(self, line: bytes) -> None:
        """One line; where a part of it finds no room, the file is rewritten as a whole the next time."""
        if self._file is None:
            raise RuntimeError("a store file that is not open")
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as exc:
            with suppress(OSError):  # what it could not write before, it cannot write now
                self._let_go()
            self._file = None
            raise self._not_written(exc) from exc
        self._behind += len(line)

    def _rewrite(self) -> None:
        """Rewrite the whole store, in one step."""
        self._previous = ""
        size = 0
        try:
            with DurableFile(self._path) as durable:
                with self._store.lock:
                    for record in self._whole():
                        line = self._line(record)
                        size += len(line)
                        durable.file.write(line)
                    self._watch_all()
                durable.commit()
            self._let_go()
            self._file = self._path.open("ab")
        except (OSError, PlanWriteFailedError) as exc:
            raise self._not_written(exc) from exc
        self._base, self._behind = size, 0

    def _whole(self) -> Iterator[dict[str, Any]]:
        store = self._store
        yield {"format": FORMAT, "version": VERSION, "schema": self._schema, "seed": self._seed}
        for branch in store.branches.values():
            yield {"branch": branch_record(branch)}
            for node in branch.nodes.values():
                yield {"in": branch.info.name, "node": node_record(node)}
        used = sorted(store.used_ids)
        yield {"whole": True, "used_ids": used, "sequence": store.sequence}

    def _write_record(self) -> dict[str, Any]:
        """The branches and objects that changed, as they are now."""
        branches = self._store.branches
        fresh = [name for name in branches if name not in self._known]
        put: list[tuple[str, Record]] = [
            (name, node_record(node))
            for name, ids in self._changed.items()
            if name in branches and name not in fresh
            for node in (branches[name].nodes.get(node_id) for node_id in ids)
            if node is not None
        ]
        put += [(name, node_record(node)) for name in fresh for node in branches[name].nodes.values()]
        drop = [
            (name, node_id)
            for name, ids in self._changed.items()
            if name in branches
            for node_id in ids
            if node_id not in branches[name].nodes
        ]
        return {
            "branches": [branch_record(branches[name]) for name in fresh],
            "gone": sorted(self._known - branches.keys()),
            "put": put,
            "drop": drop,
            "used_ids": sorted({record["id"] for _, record in put} | {node_id for _, node_id in drop}),
            "sequence": self._store.sequence,
        }

    def _watch_all(self) -> None:
        """From here on, what changes is noted."""
        self._changed = {}
        self._known = set(self._store.branches)
        self._used = len(self._store.used_ids)
        for name, branch in self._store.branches.items():
            branch.watch = _Noted(self._changed, name)

    def _line(self, record: Mapping[str, Any]) -> bytes:
        body = json.dumps(record, separators=(",", ":"))
        self._previous = line_digest(self._previous, body)
        return f"{self._previous} {body}\n".encode()

    def _not_written(self, exc: Exception) -> StoreFileError:
        found = exc.strerror if isinstance(exc, OSError) else str(exc)
        return store_error(self._path, StoreFileError, "a file that can be written", found or type(exc).__name__)


@dataclass(frozen=True, slots=True)
class _Noted:
    """Notes which objects of a branch change."""

    changed: dict[str, dict[str, None]]
    branch: str

    def __call__(self, node: Node) -> None:
        self.changed.setdefault(self.branch, {})[node.id] = None


@contextmanager
def store_file(path: Path, document: Mapping[str, Any]) -> Iterator[StoreFile]:
    """A file for one sandbox, held against others while the block runs.

    Args:
        path: the file; its folder must exist, it need not.
        document: the schema document that is served.

    Raises:
        StoreFileError: one class below it for each reason.
    """
    if not path.parent.is_dir():  # the lock would make it
        raise store_error(path, StoreFileError, "a folder that is there", "none of that name")
    lock = filelock.FileLock(f"{path}.lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout as exc:
        raise StoreFileBusyError(
            checked=f"the sandbox's store in {path}",
            expected="one sandbox that keeps it",
            found="another one that runs",
            next_action="stop that one, or name another file",
        ) from exc
    except OSError as exc:
        raise StoreFileError(
            checked=f"the sandbox's store in {path}",
            expected="a folder that can be written",
            found=exc.strerror or type(exc).__name__,
            next_action="name a file in a folder of yours",
        ) from exc
    try:
        kept = StoreFile(path, document)
        try:
            yield kept
        finally:
            kept.close()
    finally:
        lock.release()
