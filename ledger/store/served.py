"""The ledger as the HTTP API sees it: everything of :class:`ledger.store.ledger.Ledger`, pages of lists, and tokens."""

from __future__ import annotations

from ledger.store.ledger import Ledger
from ledger.store.pages import PageQueries
from ledger.store.story_pages import StoryQueries
from ledger.store.tokens import TokenQueries


class ServedLedger(Ledger, PageQueries, StoryQueries, TokenQueries):
    """A ledger whose lists are read page by page, by many at once."""
