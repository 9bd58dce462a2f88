"""Refusals that only a page can meet."""

from __future__ import annotations

from typing import ClassVar

from ledger.api.errors import ApiError


class ForeignFormError(ApiError):
    """A form that did not come from a page of the session that sent it."""

    status: ClassVar[int] = 403
