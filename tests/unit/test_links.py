"""Every relative link of the documents leads to a file, and every anchor to a heading of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def _links(text: str) -> Iterator[str]:
    for target in _LINK.findall(text):
        if not re.match(r"[a-z]+:", target):
            yield target


@cache
def _anchors(path: Path) -> frozenset[str]:
    """As GitHub makes them: lower case, no punctuation, a dash for each blank, a number for what comes again."""
    found: list[str] = []
    for heading in _HEADING.findall(path.read_text(encoding="utf-8")):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return frozenset(found)


def _broken(document: Path, text: str) -> list[str]:
    broken = []
    for target in _links(text):
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        if not path.exists() or not path.is_relative_to(ROOT) or (anchor and anchor not in _anchors(path)):
            broken.append(target)
    return broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_resolves(document: Path) -> None:
    assert _broken(document, document.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_noticed() -> None:
    text = "[a](docs/nowhere.md) [b](README.md#nowhere) [c](../outside.md) [d](README.md#exit-codes) [e](https://x.y)"
    assert _broken(ROOT / "README.md", text) == ["docs/nowhere.md", "README.md#nowhere", "../outside.md"]


def test_the_guide_and_the_readme_lead_to_every_page() -> None:
    """A page that nothing leads to is read by nobody."""
    start = (ROOT / "README.md", ROOT / "docs" / "guide.md", ROOT / "docs" / "adr" / "README.md")
    linked = {
        (document.parent / target.partition("#")[0]).resolve()
        for document in start
        for target in _links(document.read_text(encoding="utf-8"))
    }
    assert [str(path.relative_to(ROOT)) for path in DOCUMENTS if path not in linked and path not in start] == []
