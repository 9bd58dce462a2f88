"""The SDK's client as we make it: the environment changes nothing, and no text of it holds the token."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from infrahub_sdk import Config
from infrahub_sdk.config import ProxyMountsConfig
from pydantic import SecretStr, ValidationError

from consumers.infrahub.client import new_client, sdk_fields
from consumers.infrahub.connection import InfrahubOpener, declared
from consumers.infrahub.errors import DestinationReadError
from consumers.infrahub.settings import InfrahubSettings
from consumers.infrahub.transport import PooledTransport
from ledger.binding import DestinationBinding
from ledger.errors import ConfigurationError
from tests.support.operations import create
from tests.support.scripted_infrahub import (
    RUN_ID,
    TOKEN,
    Guard,
    ScriptedInfrahub,
    applied,
    lab_settings,
    open_surface,
)

HOSTILE = {
    "INFRAHUB_ADDRESS": "http://elsewhere.test",
    "INFRAHUB_API_TOKEN": "another-token",
    "INFRAHUB_USERNAME": "admin",
    "INFRAHUB_PASSWORD": "infrahub",
    "INFRAHUB_DEFAULT_BRANCH": "elsewhere",
    "INFRAHUB_DEFAULT_BRANCH_FROM_GIT": "true",
    "INFRAHUB_RETRY_ON_FAILURE": "true",
    "INFRAHUB_MAX_RETRY_DURATION": "0",
    "INFRAHUB_RATE_LIMIT_MAX_RETRIES": "10",
    "INFRAHUB_MODE": "tracking",
    "INFRAHUB_UPDATE_GROUP_CONTEXT": "true",
    "INFRAHUB_INSERT_TRACKER": "true",
    "INFRAHUB_ECHO_GRAPHQL_QUERIES": "true",
    "INFRAHUB_RECORDER": "json",
    "INFRAHUB_TRANSPORT": "json",
    "INFRAHUB_PROXY": "http://127.0.0.1:9",
    "INFRAHUB_TLS_INSECURE": "true",
    "INFRAHUB_TIMEOUT": "not a number",
    "INFRAHUB_PRIORITY": "high",
}


async def requester(*_: object, **__: object) -> None:
    """Never called."""


def sdk_config(settings: InfrahubSettings) -> Config:
    return new_client(settings, requester).config  # type: ignore[arg-type]  # never called


@pytest.mark.rules("G5")
def test_every_field_of_the_sdk_configuration_is_passed() -> None:
    assert set(sdk_fields(lab_settings(), requester)) == set(Config.model_fields)  # type: ignore[arg-type]


def test_the_sdk_trusts_nobody_because_it_makes_no_request_of_its_own() -> None:
    assert sdk_config(lab_settings()).tls_context.cert_store_stats()["x509"] == 0


@pytest.mark.rules("G5")
def test_g05_nothing_in_the_environment_changes_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(HOSTILE) == 19
    before = sdk_config(lab_settings()).model_dump(exclude={"custom_recorder", "requester"})
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    config = sdk_config(lab_settings())
    assert config.model_dump(exclude={"custom_recorder", "requester"}) == before
    assert (config.address, config.api_token, config.default_branch) == ("http://infrahub.test", TOKEN, "lab1")
    assert (config.retry_on_failure, config.rate_limit_max_retries, config.username) == (False, 0, None)


def test_g05_proxy_mounts_of_the_environment_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INFRAHUB_PROXY_MOUNTS_HTTP", "http://127.0.0.1:9")
    monkeypatch.setenv("INFRAHUB_PROXY_MOUNTS_HTTPS", "http://127.0.0.1:9")
    assert ProxyMountsConfig().is_set, "the variables are read by the library"
    assert not sdk_config(lab_settings()).proxy_mounts.is_set


@pytest.mark.rules("G5")
@pytest.mark.parametrize("name", sorted(Config.model_fields))
def test_g05_a_variable_that_the_sdk_cannot_read_is_nothing_to_us(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sdk_config(lab_settings()).model_dump(exclude={"custom_recorder", "requester"})
    monkeypatch.setenv(f"INFRAHUB_{name}".upper(), "\x7f not a value")
    assert sdk_config(lab_settings()).model_dump(exclude={"custom_recorder", "requester"}) == before


@pytest.mark.rules("G5", "P127")
async def test_g05_a_write_under_a_hostile_environment_is_one_request_to_the_right_place(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, value in HOSTILE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    server = ScriptedInfrahub()
    server.will_answer(applied("LabSiteUpsert", "id-1"))
    async with open_surface(server) as surface:
        await surface.apply_planned_operation(
            operation=create("LabSite", {"name": "a"}, {"name": "a"}), peers=surface.new_peer_resolver()
        )
    assert [str(request.url) for request in server.requests] == [
        "http://infrahub.test/api/schema?branch=lab1",
        "http://infrahub.test/graphql/lab1",
    ]
    assert {request.headers["x-infrahub-key"] for request in server.requests} == {TOKEN}
    assert not any("x-infrahub-tracker" in request.headers for request in server.requests)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_the_branch_is_quoted_into_the_path() -> None:
    client = new_client(lab_settings(branch="feature/one"), requester)  # type: ignore[arg-type]  # never called
    assert client._graphql_url(branch_name="feature/one") == "http://infrahub.test/graphql/feature%2Fone"


@pytest.mark.rules("G12")
def test_g12_settings_never_show_the_token() -> None:
    settings = lab_settings()
    assert TOKEN not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    with pytest.raises(ValidationError) as caught:
        InfrahubSettings(url="http://a.test", branch="main", token=SecretStr(TOKEN), page_size=0)
    assert TOKEN not in str(caught.value)


@pytest.mark.rules("G12")
@pytest.mark.parametrize("token", [f"{TOKEN}\n", f"{TOKEN} x", f"{TOKEN}é", f"\t{TOKEN}"])
def test_g12_a_token_that_http_cannot_carry_is_refused_without_showing_it(token: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        lab_settings(token=token)
    assert TOKEN not in "".join(traceback.format_exception(caught.value))


@pytest.mark.rules("G12", "C24")
@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("https://user:pa55word@infrahub.test", "user info"),
        ("https://pa55word@infrahub.test", "user info"),
        ("https://infrahub.test/?token=pa55word", "a query"),
        ("https://infrahub.test/#pa55word", "a fragment"),
        ("ftp://infrahub.test/pa55word", "scheme"),
        ("infrahub.test", "scheme"),
    ],
)
def test_g12_an_address_with_a_credential_is_refused_without_showing_it(url: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what) as caught:
        lab_settings(url=url)
    assert "pa55word" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.rules("G12")
def test_g12_what_the_sdk_refuses_is_said_without_its_own_text() -> None:
    settings = lab_settings().model_copy(update={"page_size": TOKEN})
    with pytest.raises(ConfigurationError) as caught:
        sdk_config(settings)
    assert "pagination_size" in caught.value.found
    assert TOKEN not in caught.value.found
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_an_empty_token_is_no_token() -> None:
    assert lab_settings(token="").token is None


def test_a_destination_that_is_not_declared_is_refused() -> None:
    opener = InfrahubOpener(declared(lab_settings()))
    with pytest.raises(ConfigurationError, match="not declared"):
        opener(DestinationBinding(url="http://infrahub.test", branch="main"), run_id=RUN_ID, guard=Guard())


async def test_another_spelling_of_a_declared_destination_is_found() -> None:
    server = ScriptedInfrahub()
    opener = InfrahubOpener(declared(lab_settings()), factory=server.new_transport)
    binding = DestinationBinding(url="HTTP://InfraHub.test:80/", branch="lab1")
    async with opener(binding, run_id=RUN_ID, guard=Guard()) as destination:
        assert destination.schema.node("LabSite") is not None
    assert server.opened == server.closed == 1


async def test_the_client_is_closed_when_opening_fails() -> None:
    server = ScriptedInfrahub(schema_document={"nodes": "none"})
    with pytest.raises(DestinationReadError):
        async with open_surface(server):
            raise RuntimeError("the block is not entered")
    assert server.opened == server.closed == 1


@pytest.mark.rules("G2")
async def test_g02_the_guard_is_asked_for_the_schema_as_well() -> None:
    server, guard = ScriptedInfrahub(), Guard()
    async with open_surface(server, guard=guard):
        assert guard.asked == len(server.requests) == 1


@pytest.mark.rules("G11")
@pytest.mark.parametrize("content", [None, "no certificate"])
def test_g11_an_unusable_file_of_authorities_is_named(content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigurationError, match=r"ca\.pem"):
        PooledTransport(lab_settings(url="https://a.test", ca_file=file), guard=Guard(), deadline=1)


async def test_an_unverified_destination_can_be_asked_for() -> None:
    unverified = PooledTransport(lab_settings(url="https://a.test", verify_tls=False), guard=Guard(), deadline=1)
    await unverified.aclose()
