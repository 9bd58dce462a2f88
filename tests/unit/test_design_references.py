"""A number of the design that a comment refers to is in the design."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = re.compile(r"\bdesign(?: section)? (\d+(?:\.\d+)?)")


def test_every_reference_to_the_design_can_be_looked_up() -> None:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    known = set(re.findall(r"^## (\d+)\.", text, re.MULTILINE)) | set(re.findall(r"\*\*(\d+\.\d+) ", text))
    missing = {
        f"{path.relative_to(ROOT)}: design {number}"
        for folder in ("ledger", "producers", "consumers", "sql", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".sql") and path != Path(__file__)
        for number in REFERENCE.findall(path.read_text(encoding="utf-8"))
        if number not in known
    }
    assert missing == set()
