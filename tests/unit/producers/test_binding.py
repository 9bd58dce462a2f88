"""Which destination a configuration means."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.binding import DestinationBinding
from ledger.errors import ConfigurationError, UsageError
from producers.binding import destination_token, resolve_binding
from producers.config_model import SyncConfiguration
from producers.settings import protect_settings


def _config(**settings: Any) -> SyncConfiguration:
    return SyncConfiguration.model_validate(
        {
            "name": "x",
            "source": {"name": "jsonl"},
            "destination": {"name": "infrahub", "settings": protect_settings(settings)},
            "schema_mapping": [{"name": "BuiltinTag"}],
        }
    )


@pytest.mark.rules("A64")
@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "http://file.example"),
        ({"INFRAHUB_URL": "http://url.example"}, "http://url.example"),
        (
            {"INFRAHUB_URL": "http://url.example", "INFRAHUB_ADDRESS": "http://address.example"},
            "http://address.example",
        ),
        ({"INFRAHUB_ADDRESS": ""}, "http://file.example"),
    ],
)
def test_address_comes_from_the_environment_before_the_file(environ: dict[str, str], expected: str) -> None:
    binding = resolve_binding(_config(url="http://file.example"), environ=environ)
    assert binding == DestinationBinding(url=expected, branch="main")


@pytest.mark.rules("A64", "C24", "C26", "G12")
def test_g12_address_is_normalised_and_has_no_credential() -> None:
    config = _config(url="HTTP://user:pw@Infrahub.Example:80/#part")
    assert resolve_binding(config, environ={}).url == "http://infrahub.example"


def test_branch_of_the_file_wins_and_a_contradicting_flag_is_refused() -> None:
    config = _config(url="http://a.example", branch="staging")
    assert resolve_binding(config, environ={"INFRAHUB_DEFAULT_BRANCH": "other"}).branch == "staging"
    assert resolve_binding(config, environ={}, branch_flag="staging").branch == "staging"
    with pytest.raises(UsageError, match="staging"):
        resolve_binding(config, environ={}, branch_flag="main")


def test_branch_without_the_file_is_flag_then_environment_then_main() -> None:
    config = _config(url="http://a.example")
    environ = {"INFRAHUB_DEFAULT_BRANCH": "env"}
    assert resolve_binding(config, environ=environ, branch_flag="flag").branch == "flag"
    assert resolve_binding(config, environ=environ).branch == "env"
    assert resolve_binding(config, environ={}).branch == "main"


@pytest.mark.parametrize(
    "settings", [{}, {"url": ""}, {"url": 5}, {"url": "ftp://x"}, {"url": "http://a", "branch": " "}]
)
def test_g11_unusable_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        resolve_binding(_config(**settings), environ={})


def test_variables_in_settings_come_from_the_environment() -> None:
    config = _config(url="http://${HOST}.example", token="${TOKEN}")
    assert resolve_binding(config, environ={"HOST": "here"}).url == "http://here.example"
    token = destination_token(config, environ={"TOKEN": "t"})
    assert token is not None
    assert token.get_secret_value() == "t"
    with pytest.raises(ConfigurationError, match="HOST"):
        resolve_binding(config, environ={})


def test_token_of_the_environment_comes_before_the_file() -> None:
    token = destination_token(_config(token="file"), environ={"INFRAHUB_API_TOKEN": "environment"})
    assert token is not None
    assert token.get_secret_value() == "environment"
    assert destination_token(_config(), environ={}) is None
