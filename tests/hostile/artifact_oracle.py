"""What a plan that was admitted must be, said a second time and without the product: short, slow and independent."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from tests.hostile.artifact_files import ACTIONS, Artifact, checksum, encode, operation_id

_KEYS = {
    "action", "destination_id", "identity", "kind", "operation_id", "payload", "relationships", "tier",
}  # fmt: skip
_OF_OPERATION = {"create": "create", "update": "update", "remove": "delete"}


def contradictions(artifact: Artifact, *, run_id: str, config_version: str) -> list[str]:
    """Everything that forbids this artifact to be admitted; empty where it really is a valid plan."""
    if artifact.manifest is None or artifact.operations is None:
        return ["a file is missing"]
    try:
        document = json.loads(artifact.manifest.decode("utf-8"), object_pairs_hook=_once, parse_constant=_never)
        operations = _lines(artifact.operations)
        coverage = None if artifact.coverage is None else _lines(artifact.coverage)
    except (ValueError, RecursionError) as exc:
        return [f"not strict JSON: {exc}"]
    found = [*_manifest(document, artifact, run_id, config_version), *_operations(operations)]
    if (coverage is None) != ("coverage" not in document):
        found.append("coverage recorded and not there, or the reverse")
    if coverage is not None:
        found += _coverage(coverage, operations, document, artifact.coverage or b"")
    if artifact.operations.count(b"\n") != document.get("operations_count"):
        found.append("another number of operations")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _never(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _lines(data: bytes) -> list[Any]:
    if data and not data.endswith(b"\n"):
        raise ValueError("the last line has no end")
    records = []
    for line in data.split(b"\n")[:-1]:
        record = json.loads(line.decode("utf-8"), object_pairs_hook=_once, parse_constant=_never)
        if json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8") != line:
            raise ValueError("a line that is not canonical")
        if "\\u0000" in json.dumps(record):
            raise ValueError("U+0000")
        records.append(record)
    return records


def _manifest(document: Any, artifact: Artifact, run_id: str, config_version: str) -> list[str]:
    wanted = {
        "format_version": 3,
        "run_id": run_id,
        "config_version": config_version,
        "plan_checksum": checksum(document, artifact.operations or b""),
    }
    found = [f"{name} is another" for name, value in wanted.items() if document.get(name) != value]
    paths = [record["path"] for record in document["source_snapshot"]]
    if any(".." in path.split("/") or not path.startswith("A/") for path in paths) or paths != sorted(set(paths)):
        found.append("snapshots elsewhere or out of order")
    return found


def _operations(records: list[Any]) -> list[str]:
    found: list[str] = []
    order = [(record["tier"], record["operation_id"]) for record in records]
    if order != sorted(set(order)) or len({name for _, name in order}) != len(order):
        found.append("operations out of order or twice")
    for record in records:
        if not record.keys() <= _KEYS or record["action"] not in _OF_OPERATION.values():
            found.append("an unknown key or action")
            continue
        if type(record["tier"]) is not int or record["tier"] < 0:
            found.append("a tier that is none")
        if record["operation_id"] != operation_id(record["action"], record["kind"], record["identity"]):
            found.append("an identifier of something else")
        if (record["action"] == "update") != ("destination_id" in record):
            found.append("a recorded id where none belongs, or none where one does")
        found += _sources(record)
    return found


def _sources(record: Any) -> list[str]:
    """Each part of the identity has one place that writes it, with the same bytes."""
    if record["action"] == "delete":
        return ["a delete that writes"] if "payload" in record else []
    written = {name: encode(value) for name, value in record["payload"].items()}
    for reference in record.get("relationships", ()):
        pairs = [{"identity": peer, "peer_kind": reference["peer_kind"]} for peer in reference["peers"]]
        if reference["field"] in written:
            return ["a field with two sources"]
        written[reference["field"]] = encode(pairs[0] if reference["cardinality"] == "one" else pairs)
    same = all(written.get(name) == encode(value) for name, value in record["identity"].items())
    return [] if same and record["identity"] else ["an identity that is not what would be written"]


def _coverage(lines: list[Any], operations: list[Any], document: Any, data: bytes) -> list[str]:
    found = []
    if document["coverage"]["digest"] != hashlib.sha256(data).hexdigest():
        found.append("another coverage")
    counted = Counter(line["action"] for line in lines)
    if document["coverage"]["counts"] != {action: counted[action] for action in ACTIONS}:
        found.append("other counts")
    told = Counter((line["operation_id"], _OF_OPERATION[line["action"]]) for line in lines if "operation_id" in line)
    planned = Counter((record["operation_id"], record["action"]) for record in operations)
    if told != planned:
        found.append("coverage and operations disagree")
    if len({encode([(line.get("entry") or {}).get("index"), line["kind"], line["identity"]]) for line in lines}) < len(
        lines
    ):
        found.append("one resource with two actions")
    return found
