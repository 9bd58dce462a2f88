"""Facts from the ledger that a review shows and that the files of a plan do not contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ledger.errors import Finding

if TYPE_CHECKING:  # see review_frame
    from ledger.events import Overlap


class LastWriter(NamedTuple):
    """Who applied something to an object last: the source, its run, and the event's position."""

    source: str
    run_id: str
    position: int


@dataclass(frozen=True, slots=True)
class LedgerWords:
    """All of it is empty where no ledger was asked.

    Attributes:
        last_writers: object key to who wrote it last; None where no ledger was asked.
        overlaps: what other sources applied to the same objects since the plan was made.
        stale: what the gate would say because the same source has applied a newer plan since.
        committed: whether the run of this plan was committed already.
    """

    last_writers: Mapping[bytes, LastWriter] | None = None
    overlaps: Sequence[Overlap] = ()
    stale: Sequence[Finding] = ()
    committed: bool = False


NO_LEDGER = LedgerWords()
