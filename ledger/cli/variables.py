"""Refuses unknown environment variables with our prefix, so that a misspelt setting is not silently ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ledger.close_match import with_close_match
from ledger.errors import ConfigurationError

ANOTHER_NAME = {"CACHE_DIR": "INFRAHUB_SYNC_CACHE_DIR"}
"""Keys whose variable has the name that infrahub-sync gave it."""


def require_known_variables(
    environ: Mapping[str, str], *, prefix: str, keys: Iterable[str], nested: Mapping[str, Iterable[str]]
) -> None:
    """Refuse unknown variables with our prefix, as unknown keys of the file are refused.

    Args:
        environ: the environment; a variable without a value counts as not set.
        prefix: what our variables begin with.
        keys: the known names behind it, in upper case.
        nested: known tables to the names of their keys, in upper case (``WRITER__LEASE_TTL``).

    Raises:
        ConfigurationError: one or several are unknown; each is named, with a close one where there is one.
    """
    known = {*keys, *nested, *(f"{table}__{key}" for table, names in nested.items() for key in names)}
    told = []
    for variable in sorted(name for name, value in environ.items() if value and name.upper().startswith(prefix)):
        name = variable.upper().removeprefix(prefix)
        if name in ANOTHER_NAME:
            told.append(f"{variable} (did you mean {ANOTHER_NAME[name]}?)")
        elif name not in known:
            told.append(with_close_match(variable, (f"{prefix}{key}" for key in sorted(known))))
    if told:
        raise ConfigurationError(
            checked=f"the variables that begin with {prefix}",
            expected="names of settings",
            found=", ".join(told),
            next_action="correct or unset them; docs/reference.md lists all",
        )
