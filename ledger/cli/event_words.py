"""What an event says, in a few words for a table; `--output ndjson` has its body whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.plan.describe import name_text

_SAID = ("source", "actor", "by", "reason")


def event_words(kind: str, body: object) -> str:
    """Who ordered it and why, which process claimed the binding, which error came back, or which node was written.

    Args:
        kind: of the event.
        body: as it was recorded; it may be anything.
    """
    if not isinstance(body, Mapping):
        return ""
    if kind == "writer.opened":
        return _listed(body, ("host", "process_id", "role"), {"process_id": "process"})
    if kind == "plan.refused":
        findings = body.get("findings")
        names = [_text(finding, "name") for finding in findings] if isinstance(findings, list) else []
        return "; ".join(part for part in (", ".join(name for name in names[:3] if name), _listed(body, _SAID)) if part)
    if kind == "checkpoint.published":
        keys = body.get("keys")
        by = ", ".join(str(key) for key in keys) if isinstance(keys, list) else "?"
        return f"events up to {name_text(str(body.get('position')))}, signed by {name_text(by)}"
    commit = body.get("commit")
    said = commit if isinstance(commit, Mapping) else body
    if kind.startswith(("plan.", "run.")):
        return _listed(said, _SAID)
    return _listed(body, ("node_id", "error", "why"), {"node_id": "node"})


def _listed(body: Mapping[str, Any], names: tuple[str, ...], labels: Mapping[str, str] | None = None) -> str:
    told = {name: _text(body, name) for name in names}
    return ", ".join(f"{(labels or {}).get(name, name)} {text}" for name, text in told.items() if text)


def _text(body: object, name: str) -> str:
    value = body.get(name) if isinstance(body, Mapping) else None
    return name_text(value) if isinstance(value, str) else ""
