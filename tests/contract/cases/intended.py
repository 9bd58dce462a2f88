"""Every difference between a real server and the sandbox that stays, with its reason; there are no others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intended:
    """One place of one case's transcript (a path, or the beginning of one) that may differ, and why."""

    case: str
    where: str
    reason: str

    def covers(self, case: str, where: str) -> bool:
        """Whether a difference found there is this one."""
        return case == self.case and f"{where}/".startswith(f"{self.where}/")


_NO_METADATA = "The sandbox keeps neither owners, sources nor protection: no plan carries them, and they guard nothing."
_NO_COMPUTATION = "The sandbox computes no attributes: no plan writes them, and they stay null."
_LIST_NULL = "A list that was set to null is not null to a filter. Nobody here filters lists, and it looks like a slip."

_LABEL_KEPT = (
    "The server keeps the label of an object, and keeps the old one where its value is cleared. Nobody reads it."
)

INTENDED: tuple[Intended, ...] = (
    Intended("document/protected-value", "/3/answer/data/ProbeTag/edges/0/node/description/is_protected", _NO_METADATA),
    Intended("one/peer-unknown-owner", "/5/answer/data/ProbeDevice/edges/0/node/backup/node", _NO_METADATA),
    Intended("document/computed-value-in-the-answer", "/1/answer/data/ProbeDeviceUpsert/object/title", _NO_COMPUTATION),
    Intended("document/computed-value-in-the-answer", "/2/answer/data/ProbeDevice/edges/0/node/title", _NO_COMPUTATION),
    Intended("kind/DcimCable", "/12/answer/data/DcimCable/edges/0/node/display_label", _LABEL_KEPT),
    Intended("null/entries-with-default", "/3/answer/data/ProbeDefault", _LIST_NULL),
    Intended("null/entries-without-default", "/3/answer/data/ProbeValue", _LIST_NULL),
)
