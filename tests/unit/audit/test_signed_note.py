"""Signed notes are those of C2SP, and keys are what they say they are."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit.checkpoint import Checkpoint, read_checkpoint
from ledger.audit.errors import KeyExistsError, KeyUnreadableError, NoSigningKeyError, NoteUnreadableError
from ledger.audit.keys import KeyFolder, trusted_keys
from ledger.audit.signed_note import SigningKey, VerifyingKey, parse_note, parse_verifying_key, sign_note

# The example of the format's first implementation (Go, golang.org/x/mod/sumdb/note).
_NEUMANN = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
_SAYING = (
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
KEY = SigningKey("tests", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
CHECKPOINT = Checkpoint(
    "http://infrahub.example:8000", "main", 17, b"r" * 32, b"h" * 32, datetime(2026, 11, 30, 6, tzinfo=UTC)
)


def test_a_note_of_another_program_is_read_and_its_signature_holds() -> None:
    note, key = parse_note(_SAYING.encode()), parse_verifying_key(_NEUMANN)
    assert key.text() == _NEUMANN
    assert note.signed_by([key]) == [key]
    assert parse_note(_SAYING.replace("answer", "Answer").encode()).signed_by([key]) == []


def test_a_note_that_came_by_mail_says_what_mail_did_to_it() -> None:
    with pytest.raises(NoteUnreadableError, match="CR LF"):
        parse_note(_SAYING.replace("\n", "\r\n").encode())
    with pytest.raises(NoteUnreadableError, match="the last line has no end"):
        parse_note(_SAYING.rstrip("\n").encode())


def test_a_note_may_have_signatures_of_keys_that_nobody_knows() -> None:
    other = SigningKey("other", Ed25519PrivateKey.generate())
    note = parse_note((sign_note("text\n", [KEY, other]) + "— witness AAAA\n").encode())
    assert note.names() == ["tests", "other", "witness"]
    assert note.signed_by([other.public]) == [other.public]
    # the same key under another name, and the same name under another key, is another key
    assert note.signed_by([VerifyingKey("renamed", other.public.public)]) == []
    assert note.signed_by([SigningKey("tests", Ed25519PrivateKey.generate()).public]) == []


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        b"text\n\nno dash AAAA\n",
        "text\n\n— \n".encode(),
        _SAYING[:-1].encode(),
        _SAYING.replace("If", "I\x07f").encode(),
        b"\xff\n\n",
        b"x" * 70_000,
        ("text\n\n" + "— a AAAA\n" * 101).encode(),
    ],
)
def test_what_is_no_note_is_a_named_refusal(data: bytes) -> None:
    with pytest.raises(NoteUnreadableError):
        parse_note(data)


@pytest.mark.parametrize(
    "text",
    ["", "a+b", _NEUMANN.replace("c74f20a3", "c74f20a4"), _NEUMANN + "AAAA", "x y+00000000+AAAA", "a+00+" + "A" * 44],
)
def test_what_is_no_public_key_is_a_named_refusal(text: str) -> None:
    with pytest.raises(KeyUnreadableError):
        parse_verifying_key(text)


def test_a_checkpoint_reads_as_it_was_written() -> None:
    note = CHECKPOINT.note([KEY])
    assert note.split("\n")[:2] == ['apply-ledger/chain/v1 ["http://infrahub.example:8000","main"]', "17"]
    read = read_checkpoint(note.encode())
    assert read.checkpoint == CHECKPOINT
    assert read.signers([KEY.public]) == ["tests"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("17\n", "017\n"),
        ("17\n", "-17\n"),
        ("time 2026", "time 2O26"),
        ("+00:00\n", "\n"),
        ("head ", "tail "),
        ('"main"', '"main" '),
    ],
)
def test_another_spelling_is_no_checkpoint(old: str, new: str) -> None:
    assert old in CHECKPOINT.text()
    with pytest.raises(NoteUnreadableError):
        read_checkpoint(sign_note(CHECKPOINT.text().replace(old, new, 1), [KEY]).encode())


def test_keys_are_made_listed_and_retired(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path / "keys")
    assert folder.known() == []
    with pytest.raises(NoSigningKeyError):
        folder.signing()
    first, second = folder.new("2026"), folder.new("2027")
    assert (tmp_path / "keys" / "2026.key").stat().st_mode & 0o777 == 0o600
    assert [key.public for key in folder.signing()] == [first, second]
    with pytest.raises(KeyExistsError):
        folder.new("2026")
    assert folder.retire("2026") == first
    assert [key.public for key in folder.signing()] == [second]
    assert [(known.key, known.signs) for known in folder.known()] == [(first, False), (second, True)]
    with pytest.raises(KeyExistsError):
        folder.new("2026")  # a name stands for one key for good
    with pytest.raises(KeyUnreadableError):
        folder.retire("2026")


def test_a_key_file_that_others_may_read_or_that_was_exchanged_signs_nothing(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    folder.new("one")
    private = tmp_path / "one.key"
    private.chmod(0o644)
    with pytest.raises(KeyUnreadableError, match="chmod 600"):
        folder.signing()
    folder.new("two")
    private.chmod(0o600)
    private.write_bytes((tmp_path / "two.key").read_bytes())
    with pytest.raises(KeyUnreadableError, match="another key"):
        folder.signing()
    private.write_text("no key")
    with pytest.raises(KeyUnreadableError, match="PEM"):
        folder.signing()


@pytest.mark.parametrize("name", ["", "../up", "a/b", "a b", "a+b", ".hidden", "x" * 65])
def test_a_name_that_no_key_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyUnreadableError):
        KeyFolder(tmp_path).new(name)
    assert list(tmp_path.iterdir()) == []


def test_trusted_keys_are_those_that_were_given_else_those_of_the_folder(tmp_path: Path) -> None:
    folder = KeyFolder(tmp_path)
    known = folder.new("known")
    (tmp_path / "given").write_text(f"{KEY.public.text()}\n")
    assert trusted_keys([], folder) == [known]
    assert trusted_keys([str(tmp_path / "given"), _NEUMANN], folder) == [KEY.public, parse_verifying_key(_NEUMANN)]
    with pytest.raises(KeyUnreadableError):
        trusted_keys([str(tmp_path / "nowhere")], folder)
