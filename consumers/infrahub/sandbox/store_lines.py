"""The lines of a sandbox's store file, read back: each with a digest over itself and the line before it.

The file is a whole store, put in place in one step, and behind it the writes that were answered since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from consumers.infrahub.sandbox.store_file_errors import (
    StoreFileError,
    StoreFileForeignError,
    StoreFileNewerError,
    StoreFileSchemaError,
    StoreFileTornError,
)

FORMAT = "apply-ledger-sandbox"
VERSION = 1
_DIGEST = 16
"""Hexadecimal digits of a line's digest: against accidents, not against anybody."""


@dataclass(slots=True)
class ReadStore:
    """What a file holds.

    ``seed`` is None where there is no file yet. ``cut_off``: a kill cut off a write that nobody had been answered.
    """

    seed: str | None = None
    branches: list[Mapping[str, Any]] = field(default_factory=list)
    nodes: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    used_ids: set[str] = field(default_factory=set)
    sequence: int = 0
    lines: int = 0
    is_whole: bool = False
    cut_off: bool = False


def read_store(path: Path, schema: str) -> ReadStore:
    """Read the file, where there is one.

    Args:
        path: the file.
        schema: the digest of the schema document that is served.

    Raises:
        StoreFileError: one class below it for each reason.
    """
    found = ReadStore()
    previous = ""
    try:
        with path.open("rb") as file:
            for line in file:
                previous = _take_line(path, schema, found, line, previous)
    except FileNotFoundError:
        return found
    except OSError as exc:
        raise store_error(path, StoreFileError, "a file that can be read", exc.strerror or type(exc).__name__) from exc
    if found.lines == 0:
        raise _foreign(path, "an empty file")
    if not found.is_whole:
        raise torn(path, "a store without its end")
    return found


def _take_line(path: Path, schema: str, found: ReadStore, line: bytes, previous: str) -> str:
    """One line; returns its digest."""
    if found.is_whole and not line.endswith(b"\n"):
        found.cut_off = True  # the kill came in the middle of a write, whose request was not answered
        return previous
    digest, _, body = line.removesuffix(b"\n").decode("utf-8", "replace").partition(" ")
    try:
        record = json.loads(body)
    except (ValueError, RecursionError):
        record = None
    if found.lines == 0:
        _require_header(path, schema, record)
    if not line.endswith(b"\n") or digest != line_digest(previous, body) or not isinstance(record, dict):
        raise torn(path, f"another line {found.lines + 1} than was written")
    try:
        _take(found, record)
    except (LookupError, TypeError, ValueError) as exc:
        raise torn(path, f"a record that is none ({type(exc).__name__})") from exc
    found.lines += 1
    return digest


def _require_header(path: Path, schema: str, record: Any) -> None:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise _foreign(path, "a file of something else")
    version = record.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise store_error(
            path,
            StoreFileNewerError,
            f"version {VERSION} of its format",
            f"version {version}" if isinstance(version, int) else "a version that is no number",
            "use the program that wrote it, or name another file",
        )
    if record.get("schema") != schema:
        raise store_error(
            path,
            StoreFileSchemaError,
            "objects of the schema that is served",
            "objects of another schema",
            "name the schema document that it was made with, or another file",
        )


def _take(found: ReadStore, record: Mapping[str, Any]) -> None:
    """Fold one record."""
    if "format" in record:
        found.seed = str(record["seed"])
    elif "branch" in record:
        found.branches.append(record["branch"])
    elif "node" in record:
        found.nodes[record["in"], record["node"]["id"]] = record["node"]
    else:
        _take_changes(found, record)


def _take_changes(found: ReadStore, record: Mapping[str, Any]) -> None:
    """The end of the whole store, or a write behind it."""
    if record.get("whole") is True:
        found.is_whole = True
    else:
        gone = {*record["gone"]}
        found.branches = [branch for branch in found.branches if branch["name"] not in gone] + record["branches"]
        found.nodes = {key: node for key, node in found.nodes.items() if key[0] not in gone} if gone else found.nodes
        for branch, node_id in record["drop"]:
            found.nodes.pop((branch, node_id), None)
        for branch, node in record["put"]:
            found.nodes[branch, node["id"]] = node
    found.used_ids.update(record["used_ids"])
    found.sequence = int(record["sequence"])


def line_digest(previous: str, body: str) -> str:
    """The digest of a line, over itself and the digest of the line before it."""
    return hashlib.sha256(f"{previous} {body}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


def schema_digest(document: Mapping[str, Any]) -> str:
    """What tells one schema document from another."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def _foreign(path: Path, found: str) -> StoreFileError:
    return store_error(
        path,
        StoreFileForeignError,
        "a sandbox's store, or no file",
        found,
        "name another file; this one is left as it is",
    )


def torn(path: Path, found: str) -> StoreFileError:
    """Bytes are missing, or others than were written."""
    return store_error(
        path,
        StoreFileTornError,
        "every line as it was written",
        found,
        "restore the file from a copy, or name another one; this one is left as it is",
    )


def store_error(
    path: Path,
    kind: type[StoreFileError],
    expected: str,
    found: str,
    next_action: str = "check its folder, its rights and the room on its disk",
) -> StoreFileError:
    """One refusal of the file at ``path``."""
    return kind(checked=f"the sandbox's store in {path}", expected=expected, found=found, next_action=next_action)
