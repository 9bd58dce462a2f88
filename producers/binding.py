"""Determines the destination of a configuration: address, branch and credential, with infrahub-sync's precedence.

Address: ``INFRAHUB_ADDRESS``, then ``INFRAHUB_URL``, then the file. Branch: the file first, then the flag, then
``INFRAHUB_DEFAULT_BRANCH``, then ``main``; a flag that contradicts the file is refused, because the file's branch
would silently win (A64).
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import SecretStr

from ledger.binding import DestinationBinding, normalise_url
from ledger.errors import ConfigurationError, UsageError
from producers.config_model import SyncConfiguration
from producers.settings import expand_variables

ADDRESS_VARIABLES = ("INFRAHUB_ADDRESS", "INFRAHUB_URL")
TOKEN_VARIABLE = "INFRAHUB_API_TOKEN"  # noqa: S105  the variable's name, not a credential
BRANCH_VARIABLE = "INFRAHUB_DEFAULT_BRANCH"
DEFAULT_BRANCH = "main"


def resolve_binding(
    config: SyncConfiguration, *, environ: Mapping[str, str], branch_flag: str | None = None
) -> DestinationBinding:
    """The destination's normalised address and branch, never with a credential (A64, C24).

    Raises:
        ConfigurationError: no address anywhere, or no usable one.
        UsageError: ``branch_flag`` names another branch than the file.
    """
    settings = expand_variables(
        {name: value for name, value in config.destination.settings.items() if name in ("url", "branch")}, environ
    )
    return DestinationBinding(
        url=_address(settings.get("url"), environ), branch=_branch(settings.get("branch"), branch_flag, environ)
    )


def destination_token(config: SyncConfiguration, *, environ: Mapping[str, str]) -> SecretStr | None:
    """The credential for the destination: the environment first, then the file; None when there is none."""
    if environ.get(TOKEN_VARIABLE):
        return SecretStr(environ[TOKEN_VARIABLE])
    settings = expand_variables(
        {name: value for name, value in config.destination.settings.items() if name == "token"}, environ
    )
    token = settings.get("token")
    return token if isinstance(token, SecretStr) else None


def _address(from_file: object, environ: Mapping[str, str]) -> str:
    for variable in ADDRESS_VARIABLES:
        if environ.get(variable):
            return normalise_url(environ[variable])
    if isinstance(from_file, str) and from_file.strip():
        return normalise_url(from_file)
    raise ConfigurationError(
        checked="the destination's address",
        expected=f"a url in destination.settings, or {' or '.join(ADDRESS_VARIABLES)} in the environment",
        found="none of them" if from_file is None else f"a {type(from_file).__name__} in destination.settings.url",
        next_action=f"set {ADDRESS_VARIABLES[0]} or the url in the file",
    )


def _branch(from_file: object, flag: str | None, environ: Mapping[str, str]) -> str:
    if from_file is None:
        return flag or environ.get(BRANCH_VARIABLE) or DEFAULT_BRANCH
    if not isinstance(from_file, str) or not from_file.strip():
        raise ConfigurationError(
            checked="destination.settings.branch",
            expected="the name of a branch",
            found="a blank text" if isinstance(from_file, str) else f"a {type(from_file).__name__}",
            next_action="correct the branch in the file or leave it out",
        )
    if flag is not None and flag != from_file:
        raise UsageError(
            checked="the branch to plan for",
            expected=f"{from_file!r}, as the configuration file says",
            found=f"{flag!r} on the command line",
            next_action="leave the flag out, or take the branch out of the file",
        )
    return from_file
