"""Refusals that only a page can meet."""

from __future__ import annotations

from typing import ClassVar

from ledger.api.errors import ApiError


class ForeignFormError(ApiError):
    """The form does not come from a page of this session."""

    status: ClassVar[int] = 403
