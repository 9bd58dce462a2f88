"""A plan directory as bytes: taken apart, put on disk, and sealed again by somebody who knows all the rules.

Nothing here is the product's: an attacker recomputes counts, digests, identifiers and order with his own hands.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MANIFEST = "plan/manifest.json"
OPERATIONS = "plan/operations.jsonl"
COVERAGE = "plan/coverage.jsonl"
MAX_READ = 2**28
EXCLUDED = ("plan_checksum", "run_id", "created_at")
ACTIONS = ("create", "update", "remove", "skip", "none")


@dataclass(frozen=True, slots=True)
class Artifact:
    """The files of a run; None where there is no such file. ``snapshots`` are by their path in the run."""

    manifest: bytes | None
    operations: bytes | None
    coverage: bytes | None
    snapshots: Mapping[str, bytes]

    @classmethod
    def of(cls, run_dir: Path) -> Artifact:
        """The files of a run directory; what is no plain file of a sensible size counts as none."""

        def read(name: str) -> bytes | None:
            path = run_dir / name
            plain = path.is_file() and not path.is_symlink() and path.stat().st_size < MAX_READ
            return path.read_bytes() if plain else None

        names = [path.relative_to(run_dir).as_posix() for path in (run_dir / "A").glob("*")]
        snapshots = {name: data for name in names if (data := read(name)) is not None}
        return cls(read(MANIFEST), read(OPERATIONS), read(COVERAGE), snapshots)

    def write(self, run_dir: Path) -> None:
        """Put the plan's files on disk, in the place of those that are there; snapshots only where they differ."""
        (run_dir / "plan").mkdir(parents=True, exist_ok=True)
        for name, data in ((MANIFEST, self.manifest), (OPERATIONS, self.operations), (COVERAGE, self.coverage)):
            if data is None:
                (run_dir / name).unlink(missing_ok=True)
            else:
                with open(run_dir / name, "wb", buffering=0) as file:
                    file.write(data)
        for name, data in self.snapshots.items():
            path = run_dir / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)

    @property
    def document(self) -> dict[str, Any]:
        """The manifest, where it can be read; else nothing."""
        try:
            found = json.loads(self.manifest or b"")
        except (ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}


def encode(value: Any) -> bytes:
    """Canonical bytes; a lone surrogate is written as raw bytes, NaN and infinities as Python spells them."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def lines_of(records: list[Any]) -> bytes:
    """Records as canonical lines."""
    return b"".join(encode(record) + b"\n" for record in records)


def records_of(data: bytes | None) -> list[Any]:
    """The lines of a file that can be read as JSON; others are left out."""
    found = []
    for line in (data or b"").split(b"\n"):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return found


def operation_id(action: Any, kind: Any, identity: Any) -> str:
    """The identifier by the rule of the format."""
    return "op_" + hashlib.sha256(encode([action, kind, identity])).hexdigest()[:16]


def checksum(document: Mapping[str, Any], operations: bytes) -> str:
    """The plan checksum by the rule of the format."""
    body = encode({name: value for name, value in document.items() if name not in EXCLUDED})
    return hashlib.sha256(body + operations).hexdigest()


def stored_order(record: Any) -> tuple[int, str]:
    """The key of the stored order; a record that has none comes last."""
    tier = record.get("tier") if isinstance(record, dict) else None
    name = record.get("operation_id") if isinstance(record, dict) else None
    return (tier if type(tier) is int else 2**70, name if isinstance(name, str) else "~")


def with_ids(records: list[Any]) -> list[Any]:
    """Records with the identifiers that they should have, in stored order, each identifier once."""
    repaired: dict[str, Any] = {}
    for record in records:
        if isinstance(record, dict) and "identity" in record:
            name = operation_id(record.get("action"), record.get("kind"), record["identity"])
            repaired[name] = {**record, "operation_id": name}
        else:
            repaired[f"?{len(repaired)}"] = record
    return sorted(repaired.values(), key=stored_order)


def coverage_order(record: Any) -> tuple[int, str, int]:
    """The key by which coverage lines are ordered."""
    if not isinstance(record, dict):
        return (2**70, "", 0)
    tier, entry = record.get("tier"), record.get("entry")
    own: Any = record.get("operation_id") or operation_id(
        record.get("action"), record.get("kind"), record.get("identity")
    )
    index = entry.get("index") if isinstance(entry, dict) else -1
    return (tier if type(tier) is int else 2**70, str(own), index if type(index) is int else -1)


def counts_of(coverage: bytes) -> dict[str, int]:
    """A count for each of the five actions."""
    found = Counter(str(record.get("action")) for record in records_of(coverage) if isinstance(record, dict))
    return {action: found[action] for action in ACTIONS}


def sealed(artifact: Artifact, **changes: Any) -> Artifact:
    """The artifact with counts, digests and checksum that fit its files; a change to ``...`` drops a key."""
    document = {**artifact.document, **changes}
    operations = artifact.operations or b""
    document["operations_count"] = changes.get("operations_count", operations.count(b"\n"))
    if artifact.coverage is not None and "coverage" not in changes:
        digest = hashlib.sha256(artifact.coverage).hexdigest()
        document["coverage"] = {"digest": digest, "counts": counts_of(artifact.coverage)}
    document = {name: value for name, value in document.items() if value is not ...}
    if "plan_checksum" not in changes:
        document["plan_checksum"] = checksum(document, operations)
    return replace(artifact, manifest=encode(document))
