"""The page of commands is that of the program, and has all of them."""

from __future__ import annotations

import re

from ledger.cli.commands import COMMANDS
from tests.support.cli_document import PAGE, render


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_every_command_has_a_heading_a_usage_and_its_options() -> None:
    text = render()
    headings = set(re.findall(r"^## `apply-ledger (\w+)`$", text, re.MULTILINE))
    assert headings == {command for commands in COMMANDS.values() for command in commands}
    assert "### `apply-ledger checkpoint key`" in text
    assert "$ apply-ledger apply [OPTIONS] {RUN}" in text
    assert "--expected-checksum" in text
    assert "--version" in text


def test_the_page_is_the_same_on_every_machine() -> None:
    """No default is taken from the environment, and no control character is left in a text."""
    text = render()
    assert not re.search(r"/home/|/root/|/tmp/|site-packages", text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
