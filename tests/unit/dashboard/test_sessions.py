"""Sessions: opaque, of this process, each with its end, and not without number."""

from __future__ import annotations

import pytest

from ledger.api import sessions
from ledger.api.sessions import Sessions, cookie_in, cookie_name


class _Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_session_is_found_by_its_cookie_alone_and_until_its_end() -> None:
    clock = _Clock()
    kept = Sessions(10.0, clock=clock)
    cookie, session = kept.begin("a" * 16)
    other, _ = kept.begin("a" * 16)
    assert kept.find(cookie) == session
    assert len({cookie, other, session.form_key}) == 3
    assert kept.find(cookie[:-1]) is None
    assert kept.find("☃\ud800") is None
    assert session.has_key(session.form_key)
    assert not session.has_key("☃")
    clock.now += 9.9
    assert kept.find(cookie) == session, "being used does not make it longer"
    clock.now += 0.1
    assert kept.find(cookie) is None
    kept.end(cookie)


def test_a_session_that_was_ended_is_gone_and_no_other() -> None:
    kept = Sessions(10.0)
    one, _ = kept.begin("a" * 16)
    two, session = kept.begin("b" * 16)
    kept.end(one)
    assert (kept.find(one), kept.find(two)) == (None, session)


def test_sessions_of_one_token_push_out_nobody_elses(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Sessions(10.0)
    quiet, session = kept.begin("a" * 16)
    busy = [kept.begin("b" * 16)[0] for _ in range(sessions.MOST_EACH + 5)]
    assert kept.find(quiet) == session
    assert [kept.find(cookie) is not None for cookie in busy] == [False] * 5 + [True] * sessions.MOST_EACH
    monkeypatch.setattr(sessions, "MOST", sessions.MOST_EACH + 1)
    kept.begin("c" * 16)
    assert kept.find(quiet) is None, "the oldest goes where there are too many of all"


def test_the_cookie_of_a_host_over_tls_has_a_name_that_only_it_can_set() -> None:
    header = f"x=1; {cookie_name(secure=True)}=a; {cookie_name(secure=False)}=b"
    assert (cookie_in(header, secure=True), cookie_in(header, secure=False)) == ("a", "b")
    assert cookie_in("", secure=True) is None
    assert cookie_in("\x00=;;,", secure=False) is None


@pytest.mark.parametrize("odd", ['x={"a":1}', "x=[1, 2]", "a b=1", "nothing", "ü=1", "=", "$Version=1", 'x="a'])
def test_cookies_of_other_applications_of_this_host_hide_ours_from_nobody(odd: str) -> None:
    for header in (f"{odd}; apply-ledger=abc", f"apply-ledger=abc; {odd}", f"{odd};apply-ledger=abc;{odd}"):
        assert cookie_in(header, secure=False) == "abc", header
    assert cookie_in(f"{odd}; not-apply-ledger=abc", secure=False) is None
