"""The destination binding: which Infrahub and which branch; the unit of single-writing (design of G2).

Two spellings of one binding compare equal through :meth:`DestinationBinding.normalised`. A binding never holds a
credential: user info is dropped, a query is kept as a fingerprint only, a fragment not at all (C24 to C26, A64).
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict

from ledger.errors import ConfigurationError

_DEFAULT_PORTS = {"http": 80, "https": 443}
QUERY_FINGERPRINT = re.compile(r"query-sha256=[0-9a-f]{64}")
"""What stands for a query: infrahub-sync's own form, so that its plans and ours name an endpoint alike (C25)."""


class DestinationBinding(BaseModel):
    """One Infrahub and one branch, without credentials."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    url: str
    branch: str

    def normalised(self) -> Self:
        """The form under which bindings are compared and stored."""
        return self.model_copy(update={"url": normalise_url(self.url)})

    def same_as(self, other: DestinationBinding) -> bool:
        """Whether both name one destination, whatever their spelling."""
        return self.normalised() == other.normalised()

    def __str__(self) -> str:
        return f"{self.url} [{self.branch}]"


@lru_cache(maxsize=256)  # asked about the same few addresses for every operation
def normalise_url(url: str) -> str:
    """Lower-case scheme and host, drop user info, default port, trailing slash and fragment; fingerprint the query.

    Raises:
        ConfigurationError: not an absolute http or https URL.
    """
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as exc:
        raise _not_a_url("a URL that cannot be parsed") from exc
    scheme = parts.scheme.lower()
    host = (parts.hostname or "").lower()
    if scheme not in _DEFAULT_PORTS or not host:
        raise _not_a_url(f"scheme {scheme or 'missing'!r}, host {host or 'missing'!r}")
    if ":" in host:
        host = f"[{host}]"
    netloc = host if port is None or port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    query = parts.query
    if query and not QUERY_FINGERPRINT.fullmatch(query):
        query = f"query-sha256={hashlib.sha256(query.encode()).hexdigest()}"
    return urlunsplit((scheme, netloc, parts.path.rstrip("/"), query, ""))


def _not_a_url(found: str) -> ConfigurationError:
    return ConfigurationError(
        checked="the destination's address",
        expected="an absolute http:// or https:// URL",
        found=found,
        next_action="correct the destination's url in the configuration or environment",
    )
