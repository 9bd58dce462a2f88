"""The folder of keys: what checkpoints are signed with, and what they are checked with.

``NAME.key`` holds a private key (PKCS 8, PEM, for its owner alone), ``NAME.pub`` the public one in the spelling of
C2SP. Every private key in the folder signs each checkpoint. So a key is replaced without a gap: make the new one, have
both sign for as long as auditors need to learn it, then retire the old one, whose public key stays.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from ledger.audit.errors import KeyExistsError, KeyUnreadableError, NoSigningKeyError
from ledger.audit.signed_note import SigningKey, VerifyingKey, parse_verifying_key, valid_key_name
from ledger.plan.files import sync_directory, write_durably, write_failures_of

_PRIVATE, _PUBLIC = ".key", ".pub"
_MAX_KEY_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key of the folder. ``signs`` is False for one that was retired, or that is somebody else's."""

    key: VerifyingKey
    signs: bool


@dataclass(frozen=True, slots=True)
class KeyFolder:
    """The keys below one folder, which is made at the first key."""

    path: Path

    def new(self, name: str) -> VerifyingKey:
        """Make a key.

        Raises:
            KeyExistsError: there is one of this name; a name stands for one key for good.
            KeyUnreadableError: no key can have this name.
            PlanWriteFailedError: the files cannot be written.
        """
        valid_key_name(name)
        with write_failures_of(self.path):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._file(name, _PUBLIC).exists() or self._file(name, _PRIVATE).exists():
            raise KeyExistsError(
                checked=f"the key {name!r} in {self.path}",
                expected="none of this name",
                found="one, or the public part of one that was retired",
                next_action="take another name, for example one with the year",
            )
        key = SigningKey(name, Ed25519PrivateKey.generate())
        pem = key.private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        self._write_private(name, pem)
        write_durably(self._file(name, _PUBLIC), f"{key.public.text()}\n".encode(), replace=False)
        return key.public

    def known(self) -> list[KnownKey]:
        """All keys, by name.

        Raises:
            KeyUnreadableError: a file is no key.
        """
        names = sorted(path.name.removesuffix(_PUBLIC) for path in self._entries() if path.name.endswith(_PUBLIC))
        return [KnownKey(self.public(name), self._file(name, _PRIVATE).exists()) for name in names]

    def public(self, name: str) -> VerifyingKey:
        """One public key.

        Raises:
            KeyUnreadableError: there is none of this name, or its file is no key.
        """
        return parse_verifying_key(self._read(valid_key_name(name), _PUBLIC).decode("utf-8", errors="replace"))

    def public_keys(self) -> list[VerifyingKey]:
        """Every public key of the folder, also of keys that sign no more; raises as :meth:`known`."""
        return [known.key for known in self.known()]

    def signing(self) -> list[SigningKey]:
        """Every key that signs.

        Raises:
            NoSigningKeyError: there is none.
            KeyUnreadableError: a file is no key, is not the one whose public key stands beside it, or is not private.
        """
        keys = [self._signing(known.key) for known in self.known() if known.signs]
        if not keys:
            raise NoSigningKeyError(
                checked=f"the private keys in {self.path}",
                expected="one to sign with",
                found="none",
                next_action="make one: apply-ledger checkpoint key new NAME",
            )
        return keys

    def retire(self, name: str) -> VerifyingKey:
        """Remove a private key; the public one stays, so that what it signed can still be checked.

        Raises:
            KeyUnreadableError: there is no private key of this name.
        """
        key = self.public(name)
        self._read(name, _PRIVATE)
        with write_failures_of(self.path):
            self._file(name, _PRIVATE).unlink()
            sync_directory(self.path)
        return key

    def _signing(self, public: VerifyingKey) -> SigningKey:
        path = self._file(public.name, _PRIVATE)
        if path.stat().st_mode & 0o077:
            raise _unusable(
                path, "a file that its owner alone may read", "one that others may read", f"chmod 600 {path}"
            )
        try:
            private = serialization.load_pem_private_key(self._read(public.name, _PRIVATE), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise _unusable(path, "a private key in PEM, without a password", "something else") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise _unusable(path, "an Ed25519 key", "a key of another kind")
        key = SigningKey(public.name, private)
        if key.public != public:
            raise _unusable(path, "the private key of the public one beside it", "another key's")
        return key

    def _write_private(self, name: str, pem: bytes) -> None:
        path = self._file(name, _PRIVATE)
        with write_failures_of(path):
            # Never readable for others, not even for a moment.
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(pem)
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self.path)

    def _entries(self) -> list[Path]:
        try:
            return sorted(self.path.iterdir())
        except FileNotFoundError:
            return []
        except OSError as exc:
            raise _unusable(self.path, "a folder that can be listed", exc.strerror or type(exc).__name__) from exc

    def _read(self, name: str, suffix: str) -> bytes:
        path = self._file(name, suffix)
        try:
            with path.open("rb") as file:
                return file.read(_MAX_KEY_BYTES)
        except OSError as exc:
            raise _unusable(path, "a readable key", exc.strerror or type(exc).__name__) from exc

    def _file(self, name: str, suffix: str) -> Path:
        return self.path / f"{name}{suffix}"


def trusted_keys(given: Sequence[str], folder: KeyFolder) -> list[VerifyingKey]:
    """The public keys that were named, else those of the folder.

    Args:
        given: public keys as text, or names of files that hold one each.
        folder: asked only where nothing was given.

    Raises:
        KeyUnreadableError: one of them is no key.
    """
    if not given:
        return [known.key for known in folder.known()]
    keys = []
    for text in given:
        if "+" in text and not Path(text).is_file():
            keys.append(parse_verifying_key(text))
            continue
        try:
            keys.append(parse_verifying_key(Path(text).read_text(encoding="utf-8")[:_MAX_KEY_BYTES]))
        except (OSError, UnicodeDecodeError) as exc:
            raise _unusable(Path(text), "a public key, or a file that holds one", type(exc).__name__) from exc
    return keys


def _unusable(path: Path, expected: str, found: str, next_action: str = "") -> KeyUnreadableError:
    return KeyUnreadableError(
        checked=f"the key in {path}",
        expected=expected,
        found=found,
        next_action=next_action or "`apply-ledger checkpoint key list` shows the keys that there are",
    )
