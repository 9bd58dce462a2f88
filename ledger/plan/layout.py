"""Paths of the files of a run, and valid run names (A4, C4, C32)."""

from __future__ import annotations

import re

from ledger.plan.errors import RunIdInvalidError

PLAN_DIRECTORY = "plan"
OPERATIONS_FILE = "plan/operations.jsonl"
MANIFEST_FILE = "plan/manifest.json"
COVERAGE_FILE = "plan/coverage.jsonl"
SOURCE_SIDE = "A"
DESTINATION_SIDE = "B"

REPLAN = "make a fresh plan of this source and commit that run"

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_SHOWN = 80


def require_run_id(run_id: str) -> str:
    """``run_id`` unchanged, when it is one path segment.

    Raises:
        RunIdInvalidError: anything else; a separator or ``..`` would name a directory elsewhere.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise RunIdInvalidError(
            checked="the run id",
            expected="one path segment of at most 128 letters, digits, '.', '_' and '-', not beginning with a sign",
            found=shown(run_id),
            next_action="give the run id as the plan command printed it",
        )
    return run_id


def shown(value: object) -> str:
    """A value for a message: one line, escaped, cut to 80 characters. Never pass a secret."""
    text = ascii(value[:_SHOWN]) if isinstance(value, str) else type(value).__name__
    if isinstance(value, bool | int | float | None):
        # An integer of thousands of digits cannot always be turned into text, and nobody reads it.
        text = repr(value) if not isinstance(value, int) or value.bit_length() < 256 else "a very long integer"
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
