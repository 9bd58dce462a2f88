"""Errors that prevent the service from starting, or end it."""

from __future__ import annotations

from ledger.errors import ConfigurationError


class NothingToServeError(ConfigurationError):
    """Every part of the service is disabled or not configured."""


class StatusPortError(ConfigurationError):
    """The address for metrics and health cannot be listened on."""
