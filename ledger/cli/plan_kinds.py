"""Checks the kinds that a user names: a misspelt one must not look like one to which nothing happens."""

from __future__ import annotations

from collections.abc import Collection

from ledger.close_match import with_close_match
from ledger.errors import UsageError


def require_kind(kind: str | None, kinds: Collection[str], *, option: str = "--kind", of: str = "this plan") -> None:
    """Do nothing where no kind is named, or one that is there.

    Raises:
        UsageError: another one; the one that may have been meant is named.
    """
    if kind is None or kind in kinds:
        return
    raise UsageError(
        checked=option,
        expected=f"a kind of {of}: {', '.join(sorted(kinds)) or 'it has none'}",
        found=with_close_match(kind, sorted(kinds)),
        next_action=f"name one of them, or leave {option} out",
    )
