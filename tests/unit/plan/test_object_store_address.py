"""Which addresses of object stores are taken, and which keys can be made below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.cli.settings import load_settings
from ledger.errors import ConfigurationError
from ledger.plan.errors import PathOutsideRunError
from ledger.plan.object_store import ObjectStore


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("s3://runs", "runs/sync/run"),
        ("s3://runs/", "runs/sync/run"),
        ("s3://runs.example/team/a", "runs.example/team/a/sync/run"),
    ],
)
def test_keys_stand_below_bucket_and_prefix(address: str, key: str) -> None:
    assert ObjectStore.at(address).key("sync/run") == key


@pytest.mark.rules("G12")
@pytest.mark.parametrize(
    "address",
    [
        "runs",
        "/srv/runs",
        "file:///srv/runs",
        "https://runs.example",
        "s3://",
        "s3://key:canary-secret@runs/team",
        "s3://runs/../other",
        "s3://runs/team?endpoint_override=canary-secret",
        "s3://runs/team#x",
        "s3://Runs/team",
        "s3://runs/te am",
    ],
)
def test_g12_other_addresses_are_refused_and_not_repeated(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError) as refused:
        ObjectStore.at(address)
    assert "canary" not in str(refused.value)
    monkeypatch.setenv("APPLY_LEDGER_ARTIFACT_STORE", address)
    with pytest.raises(ConfigurationError, match="artifact_store") as refused:
        load_settings(config=None)
    assert "canary" not in str(refused.value)


@pytest.mark.rules("G1")
@pytest.mark.parametrize("relative", ["../x", "/x", "a//b", "a/../../b", "a\\b", "a/\x00"])
def test_g01_no_key_leads_out_of_the_prefix(relative: str) -> None:
    with pytest.raises(PathOutsideRunError):
        ObjectStore.at("s3://runs/team").key(relative)


@pytest.mark.rules("G12")
@pytest.mark.parametrize("server", ["ftp://x", "http://key:canary-secret@host", "host:9000"])
def test_g12_another_server_is_named_by_its_plain_address(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    with pytest.raises(ConfigurationError, match="AWS_ENDPOINT_URL") as refused:
        ObjectStore.at("s3://runs").fetch("sync/run", Path("unused"), within=Path("unused"))
    assert "canary" not in str(refused.value)
