"""Foreign text before it is stored: masked, then escaped, then cut."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import traceback
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consumers.infrahub.errors import DestinationReadError
from consumers.infrahub.redaction import MASK, MAX_TEXT, Redactor
from consumers.recorded_text import MAX_MESSAGE_CHARACTERS, recordable
from ledger.destination import OutcomeUnknownError
from tests.hostile.answers.leaks import leaks
from tests.support.operations import create
from tests.support.scripted_infrahub import (
    TOKEN,
    Answer,
    ScriptedInfrahub,
    error,
    graphql,
    lab_reader,
    open_surface,
    refused,
    text,
)

pytestmark = pytest.mark.rules("G12")


@pytest.mark.parametrize(
    "leak",
    [
        f"the header was X-INFRAHUB-KEY: {TOKEN}",
        f"{{'X-INFRAHUB-KEY': '{TOKEN}'}}",
        "X-INFRAHUB-KEY: other-pa55word",
        '{"x-infrahub-key": "other-pa55word"}',
        "Authorization: Bearer other-pa55word",
        "authorization=Basic dXNlcjpvdGhlci1wYTU1d29yZA==",
        "Cookie: access_token=other-pa55word; x=y",
        "see https://user:other-pa55word@infrahub.test/x",
        "see https://other-pa55word@infrahub.test",
        "GET /api?token=other-pa55word&branch=main",
        "GET /api?branch=main&api_key=other-pa55word",
        "password=other-pa55word",
    ],
)
def test_g12_nothing_of_a_credential_is_left(leak: str) -> None:
    shown = Redactor([TOKEN]).text(leak)
    assert TOKEN not in shown
    assert "other-pa55word" not in shown
    assert "dXNlcjpvdGhlci1wYTU1d29yZA" not in shown
    assert MASK in shown


def test_g12_a_percent_encoded_secret_is_masked_too() -> None:
    assert Redactor(["a/b+c=="]).text("https://x.test/a%2Fb%2Bc%3D%3D/y") == f"https://x.test/{MASK}/y"


@given(before=st.integers(0, 60), limit=st.integers(1, 80))
def test_g12_a_secret_across_the_cut_leaves_no_half(before: int, limit: int) -> None:
    shown = Redactor([TOKEN]).text("x" * before + TOKEN + "y" * 50, limit=limit)
    assert not any(TOKEN[start : start + 6] in shown for start in range(len(TOKEN) - 5))


@given(st.text(st.characters(codec=None), max_size=60))
def test_recorded_text_can_always_be_stored(words: str) -> None:
    shown = Redactor([TOKEN]).text(words)
    assert "\x00" not in shown
    shown.encode("utf-8")


def test_ordinary_words_stay_as_they_are() -> None:
    words = "Violates uniqueness constraint 'name' at LabSite: keys=3, token ring, Réseaux ‐ 8‑Port\nsecond line"
    assert Redactor([TOKEN]).text(words) == words


def test_a_cut_says_how_much_there_was_and_how_to_know_it_again() -> None:
    digest = hashlib.sha256(b"abcdef").hexdigest()
    assert Redactor().text("abcdef", limit=3) == f"abc… (6 characters, sha256 {digest})"
    assert Redactor().text("abcdef", limit=6) == "abcdef"


ODD_TOKEN = "od\"d\\/t0ken+of=the&<lab>'s"


@pytest.mark.parametrize("token", [TOKEN, ODD_TOKEN], ids=["plain", "odd"])
@pytest.mark.parametrize(
    "spell",
    [
        str,
        quote,
        quote_plus,
        lambda token: quote(token, safe=""),
        lambda token: re.sub("%..", lambda match: match.group().lower(), quote(token, safe="")),
        json.dumps,
        lambda token: json.dumps(json.dumps({"key": token})),
        lambda token: json.dumps(token).replace("/", "\\/"),
        html.escape,
        repr,
        lambda token: "".join(f"\\u{ord(letter):04x}" for letter in token),
        lambda token: "".join(f"\\\\u{ord(letter):04X}" for letter in token),
        lambda token: "".join(f"%{ord(letter):02x}" for letter in token),
        lambda token: "".join(f"%25{ord(letter):02X}" for letter in token),
        lambda token: "".join(f"&#{ord(letter)};" for letter in token),
        lambda token: "".join(f"&#x{ord(letter):04X};" for letter in token),
        lambda token: base64.b64encode(f"admin:{token}".encode()).decode(),
        lambda token: base64.b64encode(f"user:{token}".encode()).decode(),
        lambda token: base64.urlsafe_b64encode(f"robot:{token}".encode()).decode(),
        lambda token: base64.b64encode(token.encode()).decode(),
    ],
)
def test_g12_a_secret_is_masked_in_every_spelling(token: str, spell: Callable[[str], str]) -> None:
    shown = Redactor([token]).text(f"<pre>it was {spell(token)}</pre>")
    assert MASK in shown
    assert not leaks(shown, token)


def test_g12_a_message_of_ten_megabytes_is_cut_and_its_digest_holds_no_secret() -> None:
    message = f"echo {TOKEN} " * 350_000
    shown = Redactor([TOKEN]).text(message)
    masked = message.replace(TOKEN, MASK)
    assert len(shown) < MAX_TEXT + 128
    assert shown.endswith(f"({len(masked)} characters, sha256 {hashlib.sha256(masked.encode()).hexdigest()})")


@settings(deadline=None)
@given(before=st.integers(65_490, 65_540))
def test_g12_a_secret_across_the_window_of_the_search_leaves_no_half(before: int) -> None:
    shown = Redactor([TOKEN]).text("x" * before + TOKEN + "y" * 50, limit=200_000)
    assert TOKEN[:6] not in shown


@pytest.mark.parametrize("unit", ["\\", "%25", "&#0", "://", "key=", "basic ", "authorization: ", TOKEN[0]])
def test_no_text_makes_the_search_endless(unit: str) -> None:
    assert len(Redactor([TOKEN]).text(unit * 60_000)) < MAX_TEXT + 128  # the suite's time limit is the judge


def test_a_recorded_message_keeps_the_mark_of_its_cut() -> None:
    long = recordable("x" * 5000)
    assert len(long) <= MAX_MESSAGE_CHARACTERS
    assert long.endswith(f"… (5000 characters, sha256 {hashlib.sha256(b'x' * 5000).hexdigest()})")
    assert recordable("a\x00\ud800b") == "a\\u0000\\ud800b"


@pytest.mark.parametrize(
    "answer",
    [
        refused("LabSiteUpsert", error(f"echo {TOKEN} \x00 \ud800", field_name="x", code="Z", http_status=422)),
        graphql({"errors": [f"echo {TOKEN}"]}, 403),
        text(f"<html>{TOKEN}</html>", 502),
        httpx.ReadError(f"reset while sending {TOKEN}"),
    ],
    ids=["graphql", "rest", "page", "fault"],
)
async def test_g12_an_error_of_a_write_holds_no_token(answer: Answer) -> None:
    server = ScriptedInfrahub()
    server.will_answer(answer)
    async with open_surface(server) as surface:
        with pytest.raises(OutcomeUnknownError) as caught:
            await surface.apply_planned_operation(
                operation=create("LabSite", {"name": "a"}, {"name": "a"}), peers=surface.new_peer_resolver()
            )
    words = f"{caught.value.findings} {''.join(traceback.format_exception(caught.value))}"
    assert TOKEN not in words
    words.encode("utf-8")
    assert "\x00" not in words


@pytest.mark.parametrize("code", [f"X {TOKEN}", TOKEN, "A\x00", "lower", "", "A" * 65, 429])
async def test_g12_what_does_not_look_like_a_code_is_not_stored_as_one(code: object) -> None:
    server = ScriptedInfrahub()
    server.will_answer(graphql({"data": None, "errors": [{"message": "no", "extensions": {"code": code}}]}))
    async with open_surface(server) as surface:
        with pytest.raises(OutcomeUnknownError) as caught:
            await surface.apply_planned_operation(
                operation=create("LabSite", {"name": "a"}, {"name": "a"}), peers=surface.new_peer_resolver()
            )
    assert caught.value.code is None


async def test_g12_no_chain_of_exceptions_shows_foreign_text() -> None:
    server = ScriptedInfrahub()
    server.will_answer(*[httpx.ReadError(f"reset while sending {TOKEN}")] * 2)
    async with open_surface(server, attempts=1) as surface:
        with pytest.raises(OutcomeUnknownError) as looked_up:
            await surface.new_peer_resolver().resolve(
                peer_kind="LabSite", identity={"name": "a"}, referring_operation_id="op_0000000000000001"
            )
    async with lab_reader(server, attempts=1) as reader:
        with pytest.raises(DestinationReadError) as read:
            await reader.counts(("LabSite",))
    for caught in (looked_up.value, read.value):
        shown = "".join(traceback.format_exception(caught))
        assert "ReadError: reset while sending [redacted]" in shown
        assert TOKEN not in shown
