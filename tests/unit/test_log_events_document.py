"""Every event that is logged is on its page with what it means, and nothing else is."""

from __future__ import annotations

import ast

import pytest

from tests.support import log_events_document
from tests.support.log_events_document import PAGE, logged, meanings, render


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "run `make rules`"


def test_every_event_has_a_meaning_and_every_meaning_an_event() -> None:
    texts = {event.text for event in logged()}
    assert set(meanings()) == texts
    assert len(texts) > 30
    assert all(meaning.endswith(".") for meaning in meanings().values())


@pytest.mark.parametrize(
    ("call", "text", "level", "fields"),
    [
        ('_log.warning("it waits", error="x", place=1)', "it waits", "warning", ("error", "place")),
        ('_log.error(f"a span could not be {what}")', "a span could not be …", "error", ()),
        ('_log.exception("a defect")', "a defect", "error", ("exception",)),
        ('_log.error("a defect", exc_info=True)', "a defect", "error", ("exception",)),
    ],
)
def test_an_event_is_read_from_its_call(call: str, text: str, level: str, fields: tuple[str, ...]) -> None:
    [event] = log_events_document._of_module(ast.parse(call))
    assert (event.text, event.level, event.fields) == (text, level, fields)


def test_an_event_whose_text_nobody_can_look_up_is_refused() -> None:
    with pytest.raises(LookupError, match="no literal"):
        list(log_events_document._of_module(ast.parse("_log.error(str(exc))")))


def test_nothing_logs_by_another_name() -> None:
    """The page is read from calls of ``_log``; a logger of another name would be missing from it."""
    for path, tree in log_events_document.modules_with("get_logger"):
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and "get_logger" in ast.unparse(node.value):
                assert [ast.unparse(target) for target in node.targets] == ["_log"], path
