"""Facts from the ledger that a review shows and that the files of a plan do not contain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.errors import Finding

if TYPE_CHECKING:  # see review_frame
    from ledger.events import Overlap


@dataclass(frozen=True, slots=True)
class LedgerWords:
    """All of it is empty where no ledger was asked.

    Attributes:
        last_writers: object key to the source that wrote it last; None where no ledger was asked.
        overlaps: what other sources applied to the same objects since the plan was made.
        stale: what the gate would say because the same source has applied a newer plan since.
    """

    last_writers: Mapping[bytes, str] | None = None
    overlaps: Sequence[Overlap] = ()
    stale: Sequence[Finding] = ()


NO_LEDGER = LedgerWords()
