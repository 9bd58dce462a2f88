"""Signed notes (C2SP ``signed-note``): a text, a blank line, and a line for each Ed25519 signature.

The format is that of the Go module mirror's and of transparency logs' checkpoints, so that other programs can check
them. A note may carry signatures of keys that a reader does not know; they say nothing to that reader.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger.audit.errors import KeyUnreadableError, NoteUnreadableError

MAX_NOTE_BYTES = 64 * 1024
_ED25519 = b"\x01"
_PREFIX = "— "
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
_MAX_SIGNATURES = 100


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key with its name; :meth:`text` is what auditors are given."""

    name: str
    public: bytes

    @property
    def key_hash(self) -> bytes:
        """Four bytes by which a signature line names its key."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:4]

    def text(self) -> str:
        """``name+hash+key``, the spelling of C2SP."""
        return f"{self.name}+{self.key_hash.hex()}+{base64.b64encode(_ED25519 + self.public).decode()}"

    def verifies(self, text: bytes, signature: bytes) -> bool:
        """Whether a signature is this key's over a text."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, text)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with its name."""

    name: str
    private: Ed25519PrivateKey

    @property
    def public(self) -> VerifyingKey:
        """What its signatures are checked with."""
        return VerifyingKey(self.name, self.private.public_key().public_bytes_raw())

    def sign(self, text: bytes) -> str:
        """The signature line."""
        signature = self.private.sign(text)
        return f"{_PREFIX}{self.name} {base64.b64encode(self.public.key_hash + signature).decode()}\n"


@dataclass(frozen=True, slots=True)
class SignedNote:
    """A note as read: nothing of it is proven until :meth:`signed_by` says so."""

    text: bytes
    signatures: tuple[tuple[str, bytes, bytes], ...]

    def signed_by(self, keys: Iterable[VerifyingKey]) -> list[VerifyingKey]:
        """Those of the keys that signed this very text."""
        return [
            key
            for key in keys
            if any(
                (name, key_hash) == (key.name, key.key_hash) and key.verifies(self.text, signature)
                for name, key_hash, signature in self.signatures
            )
        ]

    def forged(self, keys: Iterable[VerifyingKey]) -> list[str]:
        """The names of those keys of which a signature stands here that is not theirs over this text."""
        keys = list(keys)
        signed = self.signed_by(keys)
        named = {(name, key_hash) for name, key_hash, _ in self.signatures}
        return [key.name for key in keys if (key.name, key.key_hash) in named and key not in signed]

    def names(self) -> list[str]:
        """The names of the keys that it says it was signed with."""
        return [name for name, _, _ in self.signatures]


def valid_key_name(name: str) -> str:
    """The name, where a key can have it: letters, digits, dot, dash and underscore.

    Raises:
        KeyUnreadableError: it cannot.
    """
    if _NAME.fullmatch(name) is None:
        raise _bad_key(
            "the name of a key", "letters, digits, '.', '-' and '_', at most 64, a letter or digit first", name
        )
    return name


def parse_verifying_key(text: str) -> VerifyingKey:
    """Read ``name+hash+key``.

    Raises:
        KeyUnreadableError: it is none, or its hash is that of another key.
    """
    parts = text.strip().split("+", 2)
    expected = "name+hash+key of an Ed25519 key, as `apply-ledger checkpoint key public` prints it"
    try:
        name, key_hash, encoded = parts
        data = base64.b64decode(encoded, validate=True)
    except (ValueError, binascii.Error):
        raise _bad_key("a public key", expected, text[:200]) from None
    if data[:1] != _ED25519 or len(data) != 33:
        raise _bad_key("a public key", expected, "a key of another kind")
    key = VerifyingKey(valid_key_name(name), data[1:])
    if key.key_hash.hex() != key_hash.lower():
        raise _bad_key("the hash of a public key", key.key_hash.hex(), key_hash)
    return key


def sign_note(text: str, keys: Sequence[SigningKey]) -> str:
    """The whole note: text, blank line, a signature of each key.

    Raises:
        ValueError: the text does not end with a line feed, or there is no key.
    """
    if not text.endswith("\n") or not keys:
        raise ValueError("a note is lines of text and has a signature")
    return text + "\n" + "".join(key.sign(text.encode()) for key in keys)


def parse_note(data: bytes) -> SignedNote:
    """Read a note.

    Raises:
        NoteUnreadableError: it is none.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise _bad_note(f"at most {MAX_NOTE_BYTES:,} bytes", f"{len(data):,}")
    try:
        whole = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _bad_note("UTF-8 text", "other bytes") from None
    if any((char < " " and char != "\n") or char == "\x7f" for char in whole):
        found = "line ends of another system (CR LF), as mail programs make them" if "\r\n" in whole else "one"
        raise _bad_note("text without control characters, lines that end with LF", found)
    text, separator, rest = whole.rpartition("\n\n")
    if not separator or not rest.endswith("\n"):
        raise _bad_note("a text, a blank line and signature lines", "no blank line, or the last line has no end")
    lines = rest[:-1].split("\n")
    if len(lines) > _MAX_SIGNATURES:
        raise _bad_note(f"at most {_MAX_SIGNATURES} signatures", f"{len(lines)}")
    return SignedNote((text + "\n").encode(), tuple(_signature(line) for line in lines))


def _signature(line: str) -> tuple[str, bytes, bytes]:
    name, _, encoded = line.removeprefix(_PREFIX).partition(" ")
    try:
        data = base64.b64decode(encoded, validate=True)
        key_hash, signature = struct.unpack(">4s64s", data)
    except (struct.error, ValueError, binascii.Error):
        # A signature of another kind of key has another length: it may stand there, and says nothing here.
        key_hash, signature = b"", b""
    if not line.startswith(_PREFIX) or not name:
        raise _bad_note("signature lines: a dash, a name, a signature", "another line")
    return name, key_hash, signature


def _bad_note(expected: str, found: str) -> NoteUnreadableError:
    return NoteUnreadableError(
        checked="the form of a signed note",
        expected=expected,
        found=found,
        next_action="name a file that `apply-ledger checkpoint publish` wrote, byte for byte (sent by mail: attach it)",
    )


def _bad_key(checked: str, expected: str, found: str) -> KeyUnreadableError:
    return KeyUnreadableError(
        checked=checked,
        expected=expected,
        found=found,
        next_action="ask whoever publishes the checkpoints for the public key",
    )
