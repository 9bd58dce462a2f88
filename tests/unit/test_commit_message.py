"""A commit as a message, there and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.binding import DestinationBinding
from ledger.commit_message import (
    COMMIT_TYPE,
    CommitLocationError,
    ContradictoryMessageError,
    MessageRefusedError,
    decode_commit,
    encode_commit,
    message_key,
)
from tests.support.store import BINDING, make_commit

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=50)


@given(reason=TEXT, actor=TEXT.filter(bool), position=st.none() | st.integers(0, 2**63 - 1))
def test_a_commit_comes_back_as_it_was(reason: str, actor: str, position: int | None) -> None:
    commit = make_commit(reason=reason, actor=actor, ledger_position=position)
    message = encode_commit(commit)
    assert decode_commit(message.key, message.value, message.headers) == commit
    assert message.value == commit.canonical_bytes()


def test_headers_are_the_attributes_of_cloud_events() -> None:
    commit = make_commit(traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    assert dict(encode_commit(commit).headers) == {
        "ce_specversion": b"1.0",
        "ce_type": COMMIT_TYPE.encode(),
        "ce_id": commit.commit_id.encode(),
        "ce_source": b"urn:apply-ledger:source:netbox",
        "ce_subject": commit.run_id.encode(),
        "ce_time": commit.committed_at.encode(),
        "content-type": b"application/json",
        "traceparent": commit.traceparent.encode() if commit.traceparent else b"",
    }


def test_two_spellings_of_a_destination_have_one_key_so_that_their_commits_stay_in_order() -> None:
    spelled = DestinationBinding(url="HTTP://Infrahub.Example:8000/", branch="main")
    assert message_key(spelled) == message_key(BINDING) == b'["http://infrahub.example:8000","main"]'
    other = DestinationBinding(url=BINDING.url, branch="other")
    assert message_key(other) != message_key(BINDING)


@pytest.mark.rules("G10", "G11")
@given(data=st.binary(max_size=200))
def test_g10_bytes_that_are_no_commit_are_a_named_refusal(data: bytes) -> None:
    base = encode_commit(make_commit())
    with pytest.raises(MessageRefusedError) as refused:
        decode_commit(base.key, data, base.headers)
    (finding,) = refused.value.findings
    assert all((finding.checked, finding.expected, finding.found, finding.next_action))


@pytest.mark.rules("G10")
@given(position=st.integers(0), bit=st.integers(0, 7))
def test_g10_one_flipped_bit_is_a_refusal_or_a_commit_that_says_all_it_said(position: int, bit: int) -> None:
    """Free texts carry no check of their own; everything that decides what is applied does, here or at the gate."""
    base = encode_commit(make_commit(reason="a reason"))
    changed = bytearray(base.value)
    changed[position % len(changed)] ^= 1 << bit
    try:
        commit = decode_commit(base.key, bytes(changed), base.headers)
    except MessageRefusedError:
        return
    original = make_commit(reason="a reason")
    kept = ("commit_id", "run_id", "plan_checksum")
    assert [getattr(commit, name) for name in kept] == [getattr(original, name) for name in kept]
    assert commit.binding.same_as(original.binding)


@pytest.mark.parametrize(
    "artifact",
    [
        "",
        "/",
        "..",
        "../run",
        "sync/../../run",
        "/abs/run",
        "s3://bucket/run",
        "sync\\run",
        "sync/run\0",
        "file:///run",
    ],
)
def test_a_location_that_leads_elsewhere_is_never_followed(artifact: str) -> None:
    message = encode_commit(make_commit(artifact="sync/run"))
    document = json.loads(message.value) | {"artifact": artifact}
    with pytest.raises(MessageRefusedError) as refused:
        decode_commit(message.key, json.dumps(document).encode(), message.headers)
    assert isinstance(refused.value, CommitLocationError) or "\0" in artifact


def test_a_commit_under_the_key_of_another_destination_is_refused() -> None:
    message = encode_commit(make_commit())
    with pytest.raises(ContradictoryMessageError, match="key, against the binding"):
        decode_commit(b'["http://infrahub.example:8000","other"]', message.value, message.headers)
