"""What stands in the folders of the pages: templates that mark nothing safe, vendored files as they were published."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

from ledger.dashboard.assets import FOLDER as STATIC
from ledger.dashboard.assets import Assets
from ledger.dashboard.templating import FOLDER as TEMPLATES
from ledger.dashboard.templating import new_environment

VENDOR = STATIC / "vendor"
_ROW = re.compile(r"^\| `([^`]+)` \| (\S+) (\S+), .*?\| `([0-9a-f]{64})` \| (.+?), `([^`]+)` \|$", re.MULTILINE)


def test_what_is_vendored_is_what_was_published_and_has_its_licence() -> None:
    rows = _ROW.findall((VENDOR / "VENDORED.md").read_text())
    files = {path.name for path in VENDOR.iterdir()}
    assert files == {name for row in rows for name in (row[0], row[5])} | {"VENDORED.md"}
    for name, _, version, digest, licence, licence_file in rows:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
        assert version in name
        assert licence.split()[0] in (VENDOR / licence_file).read_text()


@pytest.mark.parametrize("path", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.name)
def test_a_template_marks_nothing_safe_and_holds_nothing_inline(path: Path) -> None:
    text = path.read_text()
    for forbidden in (r"\|\s*safe\b", r"\bMarkup\b", r"autoescape", r"\sstyle=", r"\son[a-z]+=", r"<style", r"hx-on"):
        assert re.search(forbidden, text) is None, forbidden
    assert re.search(r"<script(?![^>]*\bsrc=)", text) is None
    assert re.search(r"https?://", re.sub(r'xmlns="[^"]+"', "", text)) is None, "no outside address"
    assert re.search(r"=\{\{", text) is None, "an attribute without quotes"
    new_environment(Assets()).get_template(path.name)


def test_own_scripts_write_no_markup_and_ask_nobody_else() -> None:
    for path in STATIC.glob("*.js"):
        text = path.read_text()
        assert (
            re.search(r"innerHTML|outerHTML\s*=|insertAdjacentHTML|document\.write|\beval\b|new Function", text) is None
        )
        assert re.search(r"https?://", text) is None


def test_the_wheel_takes_all_of_it_along() -> None:
    build = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    assert "ledger" in build["targets"]["wheel"]["packages"]
    assert "exclude" not in build["targets"]["wheel"]
    # hatchling leaves out what version control does
    ignored = [line.strip() for line in (Path(__file__).parents[3] / ".gitignore").read_text().splitlines()]
    assert not any(re.search(r"vendor|static|\.html|\.js|\.css", line) for line in ignored)
