"""What became of one case, and what every case must keep: named errors only, and no secret in any word of them."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.errors import ApplyLedgerError
from tests.hostile.answers.leaks import leaks


@dataclass(frozen=True)
class Judged:
    """One case. ``said`` is the verdict, ``violation`` is empty where it was the right one."""

    name: str
    said: str
    size: int
    violation: str = ""


def told(error: BaseException) -> str:
    """Everything that a reader would see of an error and of the errors behind it."""
    words = []
    current: BaseException | None = error
    while current is not None:
        words.append(f"{type(current).__name__}: {current}")
        if isinstance(current, ApplyLedgerError):
            words.append(repr(current.findings))
            words += [repr(getattr(current, name, "")) for name in ("code", "http_status")]
        behind = None if current.__suppress_context__ else current.__context__
        current = current.__cause__ or behind
    return "\n".join(words)


def leak_in(error: BaseException, token: str) -> str:
    """What is wrong with an error's words, empty where nothing is."""
    words = told(error)
    if leaks(words, token):
        return "the token stands in the error"
    if "\x00" in words or len(words) > 40_000:
        return "the error cannot be recorded"
    try:
        words.encode()
    except UnicodeEncodeError:
        return "the error is no text"
    return ""
