"""Leave to write to the default branch of a real server."""

from __future__ import annotations

import os

from tests.live.infrahub import LiveInfrahub

MAIN = "APPLY_LEDGER_TEST_INFRAHUB_MAIN"
"""Set to anything, it is the word of whoever named a server that these tests may write to its default branch."""


def require_leave(live: LiveInfrahub) -> None:
    """Stop where the server is somebody's and nobody said that its default branch may be written to.

    Raises:
        RuntimeError: it was not said; a live test that was asked for is never skipped.
    """
    if not live.is_thrown_away and not os.environ.get(MAIN):
        raise RuntimeError(
            f"the contract cases load kinds into the default branch of {live.url}, write objects to it and merge"
            f" branches into it: set {MAIN}=yes if that is meant, or leave tests/contract out"
        )
