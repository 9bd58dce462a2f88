"""When, where and with what something was verified: without it a report is no evidence, because it names no subject."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from rich.text import Text

from ledger.cli.output import people
from ledger.cli.session import embedded
from ledger.commit import utc_text

if TYPE_CHECKING:
    from ledger.audit.signed_note import VerifyingKey
    from ledger.cli.settings import Settings

_HARMLESS = frozenset({"host", "port", "dbname", "user", "sslmode"})
"""Parameters of a DSN that may be shown; any other may be, or hold, a secret."""

_NOT_SHOWN = "an address that is not postgresql://USER@HOST:PORT/DATABASE"


@dataclass(frozen=True, slots=True)
class VerificationRecord:
    """The circumstances of one verification.

    Attributes:
        at: when it began, by this host's clock, UTC.
        subject: what was looked at: a data folder, a server without its password, or a file.
        keys: names and hashes of the public keys that were trusted.
        notes: of each note or file that was given: its name, and sha256 of its bytes.
    """

    at: datetime
    subject: str
    keys: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]

    def document(self) -> dict[str, Any]:
        """For machines."""
        return {
            "at": utc_text(self.at),
            "program": program(),
            "host": platform.node(),
            "subject": self.subject,
            "keys": list(self.keys),
            "files": [{"name": name, "sha256": digest} for name, digest in self.notes],
        }

    def lines(self) -> list[tuple[str, str]]:
        """For people: a label and a text each."""
        by = f"{self.at.isoformat(timespec='seconds').removesuffix('+00:00')}Z by {program()} on {platform.node()}"
        keys = ", ".join(self.keys) or "none was known"
        files = [("given", f"{name}, sha256 {digest}") for name, digest in self.notes]
        return [("verified", by), ("subject", self.subject), ("keys", keys), *files]


def program() -> str:
    """Name and version of this program."""
    return f"apply-ledger {version('apply-ledger')}"


def recorded(subject: str, keys: Sequence[VerifyingKey], files: Mapping[str, bytes]) -> VerificationRecord:
    """The circumstances of a verification that begins now.

    Args:
        subject: what is looked at.
        keys: that are trusted.
        files: by name, the bytes of what was given to compare with.
    """
    return VerificationRecord(
        at=datetime.now(UTC),
        subject=subject,
        keys=tuple(f"{key.name}+{key.key_hash.hex()}" for key in keys),
        notes=tuple((name, hashlib.sha256(data).hexdigest()) for name, data in files.items()),
    )


def say_ledger(settings: Settings) -> None:
    """Name the ledger that a command uses: in another shell, or from another folder, it may be another one."""
    people.print(Text(ledger_subject(settings), style="dim"), soft_wrap=True)


def ledger_subject(settings: Settings) -> str:
    """Which ledger the settings name, without a secret."""
    if settings.dsn is None:
        return f"the embedded ledger in {embedded(settings).status().folder}"
    return f"the ledger of {shown_dsn(settings.dsn.get_secret_value())}"


def export_subject(root: Path) -> str:
    """Which export it is: its manifest names every other file with its sha256."""
    from ledger.audit.export import layout
    from ledger.audit.export.layout import file_record, regular_file

    manifest, digest = regular_file(root, layout.MANIFEST), "unknown"
    if manifest is not None:
        with suppress(OSError):  # whoever reads the export refuses it
            digest = file_record(root, manifest).sha256
    return f"the export in {root.absolute()}, manifest with sha256 {digest}"


def shown_dsn(dsn: str) -> str:
    """A DSN without password and without parameters that could be one; one that is none is not shown at all.

    A password with ``/``, ``?`` or ``#`` in it that is not escaped ends the part in which a password is looked for.
    """
    try:
        parts = urlsplit(dsn)
        host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
    except ValueError:
        return _NOT_SHOWN
    if parts.scheme not in ("postgresql", "postgres") or "@" in parts.path + parts.query + parts.fragment:
        return _NOT_SHOWN
    place = f"[{host}]{port}" if ":" in host else host + port
    user = f"{parts.username}@" if parts.username else ""
    shown = urlencode([(name, value) for name, value in parse_qsl(parts.query) if name in _HARMLESS])
    return f"{parts.scheme}://{user}{place}{parts.path}{f'?{shown}' if shown else ''}"
