"""What a page shows, as a command to copy."""

from __future__ import annotations

import shlex

from ledger.plan.canonical import canonical_json_text


def command(*words: str) -> str:
    """A command of this program, quoted for a shell."""
    return shlex.join(["apply-ledger", *words])


def object_command(name: str, kind: str, identity: dict[str, object], url: str, branch: str) -> str:
    """``history`` or ``blame`` of one object on one destination."""
    return command(name, kind, canonical_json_text(identity), "--url", url, "--branch", branch)
