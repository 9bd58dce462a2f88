"""Whatever words are made of: a terminal can show them, and they come to an end."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import MAX_NAMED, ApplyLedgerError, Finding, RefusalGroup
from ledger.plan.describe import quoted_name
from ledger.printable import MAX_WORDS, refusal_words, visible, visible_json, words

UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=40)  # surrogates too


def unseen(text: str) -> set[str]:
    return {char for char in text if unicodedata.category(char) in UNSEEN}


@pytest.mark.rules("G11")
@given(text=ANY_TEXT, times=st.integers(1, 500))
def test_g11_words_are_printable_bounded_and_stay_what_they_are(text: str, times: int) -> None:
    told = words(text * times)
    assert not unseen(told)
    assert len(told) <= MAX_WORDS
    assert words(told) == told
    assert words(text * times, limit=100) == words(words(text * times, limit=100), limit=100)
    assert len(words(text * times, limit=100)) <= 100


def test_words_that_are_cut_say_how_long_they_were() -> None:
    assert words("x" * MAX_WORDS) == "x" * MAX_WORDS
    assert words("x" * (MAX_WORDS + 1)).endswith("x… (8,001 characters)")
    assert words("\x1b" * MAX_WORDS).endswith("… (8,000 characters)")


@pytest.mark.parametrize("limit", [1, 2, 10, 40, 79, 80, 81])
def test_a_short_cut_still_shows_how_the_text_begins(limit: int) -> None:
    shown = words("x" * 1000, limit)
    assert len(shown) <= limit
    assert shown.startswith("x" * (limit // 2))
    assert "…" in shown
    assert words("x" * limit, limit) == "x" * limit


@given(document=st.recursive(ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=5))
def test_a_json_document_says_the_same_and_holds_nothing_active(document: object) -> None:
    text = visible_json(json.dumps(document, ensure_ascii=False))
    assert not unseen(text)
    assert json.loads(text) == document
    assert visible_json(text) == text


@pytest.mark.parametrize("shown", ["é", "漢", "a b", "👍", "ñ", "—", '"\\'])
def test_letters_marks_and_signs_stay(shown: str) -> None:
    assert visible(shown) == visible_json(shown) == words(shown) == shown


@pytest.mark.rules("G12")
@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ("http://ada:s3cret@host:8000/x", "http://…@host:8000/x"),
        ("found 'https://s3cret@host', and", "found 'https://…@host', and"),
        ("postgresql://ada:a@b@host/db?password=c", "postgresql://…@host/db?…"),
        ("one http://a:b@c two http://d:e@f", "one http://…@c two http://…@f"),
        ("http://host/path@2x", "http://host/path@2x"),
        ("found 'http://host/?token=s3cret', as recorded", "found 'http://host/?…', as recorded"),
        ("http://host/p#s3cret.", "http://host/p#…."),
        ("http://host/#?a http://host?b", "http://host/#… http://host?…"),
        (f"http://host/?query-sha256={'a' * 64}, and", f"http://host/?query-sha256={'a' * 64}, and"),
        (f"http://host/?query-sha256={'a' * 64}&token=b", "http://host/?…"),
        ('{"a":"http://host?b=c","d":"e"}', '{"a":"http://host?…"}'),
        ("what is at http://host?", "what is at http://host?"),
        ("GET /objects?kind=K", "GET /objects?kind=K"),
        ("ada@host", "ada@host"),
    ],
)
def test_g12_no_refusal_shows_what_may_be_secret_in_a_url(found: str, shown: str) -> None:
    assert refusal_words(found) == shown
    assert shown in str(ApplyLedgerError(checked="x", expected=found, found="y", next_action="z"))
    assert Finding(name="x", checked="x", expected="y", found=found, next_action="z").found == shown


@pytest.mark.rules("G12", "G11")
def test_g12_what_is_no_name_is_not_shown_as_one() -> None:
    assert quoted_name("LocationSite") == "'LocationSite'"
    assert quoted_name("name") == "'name'"
    for text in ("", "s3cret-value", "two words", "9lives", "x" * 301, "name\n"):
        assert quoted_name(text) == f"a text of {len(text):,} characters that is no name"


@pytest.mark.rules("G11")
@given(text=ANY_TEXT)
def test_g11_no_refusal_and_no_finding_can_hold_anything_else(text: str) -> None:
    refusal = ApplyLedgerError(checked=text, expected=text, found=text * 400, next_action=text)
    finding = Finding(name="x", checked=text, expected=text, found=text * 400, next_action=text)
    for told in (str(refusal), str(finding), refusal.found, finding.found, *map(str, refusal.findings)):
        assert not unseen(told)
        assert len(told) <= 4 * MAX_WORDS + 100
    assert Finding.model_validate(finding.model_dump()) == finding


def test_the_text_of_a_group_names_so_many_and_counts_the_rest() -> None:
    one = Finding(name="x", checked="a", expected="b", found="c", next_action="d")
    group = RefusalGroup(checked="all", findings=[one] * (MAX_NAMED + 2), next_action="look")
    assert len(group.findings) == MAX_NAMED + 2
    assert str(group).endswith("\n  and 2 more")
    assert "more" not in str(RefusalGroup(checked="all", findings=[one] * MAX_NAMED, next_action="look"))
