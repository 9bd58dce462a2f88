"""Where the bench measures: a server, a size, and the program that we are compared with."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.live.sizes import Sizes
from tests.live.infrahub import LiveBranch, LiveInfrahub

SYNC = Path(__file__).resolve().parents[3] / ".state/infrahub-sync/bin/infrahub-sync"
"""Where make installs the program that we are compared with."""
OURS = Path(sys.executable).with_name("apply-ledger")
"""The program of the environment that the tests run in, which has more in it than a user's."""


@dataclass(frozen=True, slots=True)
class Place:
    """A real Infrahub, or the sandbox where only the bench itself is tried.

    Attributes:
        infrahub: the server.
        sizes: how large each case is.
        sync: the program ``infrahub-sync``, in an environment of its own.
        ours: the program ``apply-ledger``.
    """

    infrahub: LiveInfrahub
    sizes: Sizes
    sync: Path
    ours: Path = OURS

    @contextmanager
    def branch(self) -> Iterator[LiveBranch]:
        """A branch for one measurement, forked from main."""
        branch = self.infrahub.new_branch("bench")
        try:
            yield branch
        finally:
            branch.discard()
