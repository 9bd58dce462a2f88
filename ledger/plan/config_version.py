"""The configuration version: which configuration a plan was derived from (A60, A71 to A73)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from ledger.errors import ConfigurationError
from ledger.plan.canonical import canonical_json_bytes, canonical_value
from ledger.plan.layout import shown

LOCATION_KEY = "directory"
"""Top-level key with the location of a configuration, which is not part of it (A71)."""

_PRINTABLE = re.compile(r"[\x20-\x7e]+")


def config_version(document: Mapping[str, Any]) -> str:
    """Digest of a parsed configuration: 64 lower-case hexadecimal digits.

    Only the top-level ``directory`` is left out, so that a plan made in one checkout applies from another. Settings
    are inside, also a source's own ``directory`` and credentials: another credential is another configuration (A72).
    Of all values only this digest is ever written (A73).

    Args:
        document: the parsed configuration, with the overrides of its settings under a key of their own.

    Raises:
        UnserializablePayloadValueError: a value that has no canonical form; the value itself is not shown.
    """
    body = {
        key: canonical_value(value, kind="configuration", field=str(key))
        for key, value in document.items()
        if key != LOCATION_KEY
    }
    return hashlib.sha256(canonical_json_bytes(canonical_value(body, kind="configuration", field="key"))).hexdigest()


def require_config_version(value: str) -> str:
    """A version that the caller supplies, unchanged: opaque, compared for equality, never parsed (A60).

    Raises:
        ConfigurationError: it is empty or has characters other than printable ASCII.
    """
    if not _PRINTABLE.fullmatch(value):
        raise ConfigurationError(
            checked="the configuration version",
            expected="non-empty printable ASCII",
            found=shown(value),
            next_action="give the version that the plan was made with",
        )
    return value
