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


INTENDED: tuple[Intended, ...] = ()
