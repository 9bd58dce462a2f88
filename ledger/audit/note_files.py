"""Signed notes as files: a folder for each binding, a file for each head."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from ledger.audit.publish import Published
from ledger.plan.files import write_durably, write_failures_of


def write_note(folder: Path, done: Published) -> Path:
    """Write a published checkpoint below ``folder``; returns where. Writing the same one again changes nothing.

    Raises:
        PlanWriteFailedError: the file cannot be written.
    """
    place = folder / folder_name(done.url, done.branch)
    with write_failures_of(place):
        place.mkdir(parents=True, exist_ok=True)
    path = place / f"{done.position:012}.note"
    write_durably(path, done.note.encode())
    return path


def folder_name(url: str, branch: str) -> str:
    """A name for the files of one binding: readable, and never that of another one."""
    readable = re.sub(r"[^a-z0-9]+", "-", f"{url.split('://')[-1]}-{branch}".lower()).strip("-")[:60]
    return f"{readable}-{hashlib.sha256(f'{url} {branch}'.encode()).hexdigest()[:8]}"
