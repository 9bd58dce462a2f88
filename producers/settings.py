"""Settings of a source or destination in a configuration file: credentials and ``${NAME}`` references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import SecretStr

from ledger.errors import ConfigurationError

SECRET_SETTINGS = frozenset({"token", "password", "api_token", "api_key", "secret"})
"""Names under which credentials occur in settings; their values are never stored or shown (G12)."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def secret_settings(settings: Mapping[str, Any]) -> set[str]:
    """The names among these settings that hold a credential."""
    return {name for name in settings if str(name).lower() in SECRET_SETTINGS}


def protect_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with each credential wrapped, so that printing or logging them cannot show it."""
    secrets = secret_settings(settings)
    return {name: SecretStr(str(value)) if name in secrets else value for name, value in settings.items()}


def expand_variables(settings: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings with ``${NAME}`` in text values replaced from the environment.

    Raises:
        ConfigurationError: a variable that a setting names is not set.
    """
    return {name: _expanded(name, value, environ) for name, value in settings.items()}


def _expanded(name: str, value: Any, environ: Mapping[str, str]) -> Any:
    if isinstance(value, SecretStr):
        return SecretStr(_expanded(name, value.get_secret_value(), environ))
    if not isinstance(value, str):
        return value

    def replacement(match: re.Match[str]) -> str:
        variable = match.group(1)
        if variable not in environ:
            raise ConfigurationError(
                checked=f"the setting {name!r}",
                expected=f"the environment variable {variable} that it refers to",
                found="it is not set",
                next_action=f"set {variable} or write the value into the file",
            )
        return environ[variable]

    return _VARIABLE.sub(replacement, value)
