"""What keeps a live server from being there."""

from __future__ import annotations


class LiveServerError(RuntimeError):
    """The live server could not be installed, started or reached; the message says why and what to do."""
