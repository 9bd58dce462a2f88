"""A ledger that gives an audit its events and plan lines one by one only: what it says must not depend on the way."""

from __future__ import annotations

from typing import Any

from ledger.store.ledger import Ledger

_BY_PAGES = ("hashed_pages", "planned_pages", "hashed_documents")


class OneByOne:
    """Everything that a ledger has, but for pages of bytes."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        if name in _BY_PAGES:
            raise AttributeError(name)
        return getattr(self._ledger, name)
