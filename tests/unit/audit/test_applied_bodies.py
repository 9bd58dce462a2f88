"""The short way past bodies of applied operations lets nothing through that the long way would name."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.audit.bodies import is_canonical
from ledger.audit.plain_events import is_plain_body
from ledger.events import OperationApplied

_NUMBERS = st.integers(-(10**6), 10**19)
_NODES = st.one_of(st.uuids().map(str), st.text(max_size=12))


@settings(deadline=None)
@given(_NODES, _NUMBERS, _NUMBERS)
def test_what_takes_the_short_way_is_a_canonical_body(node_id: str, sent: int, duration: int) -> None:
    body = b'{"duration_ms":%d,"node_id":"%b","note":null,"sent_ms":%d}' % (
        duration,
        node_id.encode("utf-8", errors="backslashreplace"),
        sent,
    )
    if is_plain_body(body):
        assert OperationApplied.model_validate_json(body).canonical_bytes() == body
        assert is_canonical(body)


@given(st.uuids().map(str), st.integers(0, 10**9), st.integers(0, 10**9))
def test_ordinary_bodies_take_it(node_id: str, sent: int, duration: int) -> None:
    body = OperationApplied(node_id=node_id, sent_ms=sent, duration_ms=duration).canonical_bytes()
    assert is_plain_body(body)


def test_what_is_nearly_one_does_not() -> None:
    good = OperationApplied(node_id="n", sent_ms=1, duration_ms=2).canonical_bytes()
    assert is_plain_body(good)
    for old, new in (
        (b'"n"', b'"\\u006e"'),
        (b'"n"', b'"n\\""'),
        (b":1}", b":01}"),
        (b":1}", b":1.0}"),
        (b":1}", b":true}"),
        (b"}", b"} "),
        (b"}", b',"x":1}'),
        (b":null", b": null"),
        (b"null", b'"a"'),
    ):
        assert not is_plain_body(good.replace(old, new)), new
