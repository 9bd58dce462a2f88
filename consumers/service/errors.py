"""Errors that prevent the service from starting, or end it."""

from __future__ import annotations

from ledger.errors import ConfigurationError


class NothingToServeError(ConfigurationError):
    """Every part of the service was left out, or lacks what it needs."""


class StatusPortError(ConfigurationError):
    """The address for metrics and health cannot be listened on."""
