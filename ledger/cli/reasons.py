"""Orders that have to say why: where an installation wants a change number with each."""

from __future__ import annotations

from ledger.cli.settings import Settings
from ledger.errors import UsageError


class ReasonRequiredError(UsageError):
    """An order has no reason, and this installation takes none without (``require_reason``)."""


def require_reason(settings: Settings, reason: str) -> None:
    """Refuse an order without a reason where the settings want one.

    Raises:
        ReasonRequiredError: it has none.
    """
    if settings.require_reason and not reason.strip():
        raise ReasonRequiredError(
            checked="the reason of the order",
            expected="one, such as the number of a change: the settings have require_reason",
            found="none",
            next_action="give it with --reason, or in the field Reason",
        )
