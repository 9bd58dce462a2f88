"""Makes infrahub-sdk's client so that nothing in the environment can change what it does (FF24).

Every field of the SDK's configuration that is not passed is read from ``INFRAHUB_*``: retries, branch, proxy, tracking,
a recorder that writes tokens into files. So every field is passed, a test compares with the SDK's own list, and the
variables are not looked at: one that the SDK cannot read would end the program even where its field is passed.
"""

from __future__ import annotations

import math
import ssl
from typing import Any

from infrahub_sdk import Config, InfrahubClient
from infrahub_sdk.config import ProxyMountsConfig
from infrahub_sdk.constants import InfrahubClientMode
from infrahub_sdk.recorder import NoRecorder, RecorderType
from infrahub_sdk.types import AsyncRequester, RequesterTransport
from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from consumers.infrahub.settings import InfrahubSettings
from ledger.errors import ConfigurationError


class _PassedAlone(Config):
    """The SDK's configuration from what is passed and nothing else."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The SDK's own first source, without the environment, files and secrets behind it."""
        passed, *_ = super().settings_customise_sources(
            settings_cls, init_settings, env_settings, dotenv_settings, file_secret_settings
        )
        return (passed,)


def sdk_fields(settings: InfrahubSettings, requester: AsyncRequester) -> dict[str, Any]:
    """A value for every field of the SDK's configuration. Holds the bare token: never log it."""
    return {
        "address": settings.url,
        "api_token": settings.token.get_secret_value() if settings.token is not None else None,
        "username": None,
        "password": None,
        "default_branch": settings.branch,
        "default_branch_from_git": False,
        "timeout": math.ceil(settings.request_timeout),
        "retry_on_failure": False,
        "retry_delay": 5,
        "retry_max_delay": 60,
        "retry_status_codes": [],
        "max_retry_duration": 0,
        "rate_limit_retry_enabled": True,
        "rate_limit_max_retries": 0,
        "rate_limit_backoff_base": 0.5,
        "rate_limit_backoff_max": 60.0,
        "mode": InfrahubClientMode.DEFAULT,
        "update_group_context": False,
        "insert_tracker": False,
        "identifier": None,
        "echo_graphql_queries": False,
        "recorder": RecorderType.NONE,
        "custom_recorder": NoRecorder(),
        "transport": RequesterTransport.HTTPX,
        "proxy": None,
        "proxy_mounts": ProxyMountsConfig.model_construct(http=None, https=None),
        "tls_insecure": False,
        "tls_ca_file": None,
        "priority": None,
        "pagination_size": settings.page_size,
        "max_concurrent_execution": 1,
        "schema_converge_timeout": 60,
        "marketplace_url": "https://marketplace.invalid",
        "requester": requester,
        "sync_requester": None,
        "log": None,
    }


def new_client(settings: InfrahubSettings, requester: AsyncRequester) -> InfrahubClient:
    """One client for one destination.

    Raises:
        ConfigurationError: the SDK does not accept a setting; its own text is left out, it prints the token (G12).
    """
    try:
        config = _PassedAlone(**sdk_fields(settings, requester))
        # The SDK reads all authorities of the system for each client, for requests of its own that it never makes here.
        # A context that trusts nobody costs nothing, and would fail such a request.
        config.set_ssl_context(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return InfrahubClient(config=config)
    except ValidationError as exc:
        fields = ", ".join(sorted({str(part) for error in exc.errors(include_input=False) for part in error["loc"]}))
    raise ConfigurationError(
        checked=f"the settings of the destination {settings.binding}",
        expected="settings that infrahub-sdk accepts",
        found=f"not accepted: {fields or 'their combination'}",
        next_action="correct the destination's settings",
    )
