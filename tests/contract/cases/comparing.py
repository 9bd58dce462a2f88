"""Compares two transcripts and says where they differ; what may differ is in :mod:`tests.contract.cases.intended`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.contract.cases.intended import INTENDED, Intended

_ABSENT = "(nothing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place of a transcript where the server and the sandbox say different things."""

    case: str
    where: str
    server: str
    sandbox: str

    def __str__(self) -> str:
        return f"{self.case} {self.where}\n     server: {self.server}\n    sandbox: {self.sandbox}"


def differences(case: str, server: Any, sandbox: Any) -> list[Difference]:
    """Every difference between what a server said and what the sandbox said."""
    return list(_walk(case, "", server, sandbox))


def unlisted(found: list[Difference]) -> list[Difference]:
    """Those that nobody intended."""
    return [item for item in found if not any(entry.covers(item.case, item.where) for entry in INTENDED)]


def vanished(case: str, found: list[Difference]) -> list[Intended]:
    """Entries about this case whose difference is no longer there."""
    return [
        entry
        for entry in INTENDED
        if entry.case == case and not any(entry.covers(item.case, item.where) for item in found)
    ]


def _walk(case: str, where: str, server: Any, sandbox: Any) -> Iterator[Difference]:
    if isinstance(server, dict) and isinstance(sandbox, dict):
        for name in sorted({*server, *sandbox}):
            yield from _walk(case, f"{where}/{name}", server.get(name, _ABSENT), sandbox.get(name, _ABSENT))
    elif isinstance(server, list) and isinstance(sandbox, list) and len(server) == len(sandbox):
        for position, pair in enumerate(zip(server, sandbox, strict=True)):
            yield from _walk(case, f"{where}/{position}", *pair)
    elif _text(server) != _text(sandbox):
        yield Difference(case, where, _text(server), _text(sandbox))


def _text(value: Any) -> str:
    """JSON text, in which 1, 1.0 and true are three values."""
    return json.dumps(value, sort_keys=True)
