"""The installation's settings: destinations that have one name in the ledger, and where artifacts are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.binding import DestinationBinding
from ledger.cli.settings import Settings, load_settings
from ledger.errors import ConfigurationError

ONE = DestinationBinding(url="http://one.example:8000", branch="main")


def _settings(tmp_path: Path, *destinations: str) -> Settings:
    path = tmp_path / "apply-ledger.toml"
    path.write_text("".join(f"[[destination]]\n{text}\n" for text in destinations), encoding="utf-8")
    return load_settings(config=path)


@pytest.mark.rules("G2")
@pytest.mark.parametrize("spelling", ["http://one.example:8000", "HTTP://Proxy.example/", "http://10.0.0.5:8000"])
def test_g02_a_destination_is_recorded_under_its_url_whatever_its_name(tmp_path: Path, spelling: str) -> None:
    settings = _settings(
        tmp_path, 'url = "http://one.example:8000/"\naliases = ["http://proxy.example", "http://10.0.0.5:8000"]'
    )
    assert settings.recorded_as(DestinationBinding(url=spelling, branch="main")) == ONE
    assert settings.declared(DestinationBinding(url=spelling, branch="main")).binding == ONE


def test_what_is_not_declared_stands_for_itself(tmp_path: Path) -> None:
    settings = _settings(tmp_path, 'url = "http://one.example:8000"\naliases = ["http://proxy.example"]')
    other = DestinationBinding(url="http://proxy.example/", branch="other")
    assert settings.recorded_as(other) == other.normalised()


@pytest.mark.rules("G2")
@pytest.mark.parametrize(
    "second",
    [
        'url = "http://one.example:8000/"',
        'url = "http://two.example"\naliases = ["http://one.example:8000"]',
        'url = "http://10.0.0.5:8000"',
        'url = "http://two.example"\naliases = ["http://10.0.0.5:8000/"]',
    ],
)
def test_g02_two_declarations_of_one_destination_are_refused(tmp_path: Path, second: str) -> None:
    first = 'url = "http://one.example:8000"\naliases = ["http://10.0.0.5:8000"]'
    with pytest.raises(ConfigurationError, match="declared twice"):
        _settings(tmp_path, first, second)
    assert len(_settings(tmp_path, first, f'{second}\nbranch = "other"').destination) == 2


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("content", "told"),
    [(b"", "is empty"), (b" \n", "is empty"), (b"\xff\xfe", "UnicodeDecodeError"), (None, "readable")],
)
def test_a_token_file_without_a_token_is_refused_by_name(tmp_path: Path, content: bytes | None, told: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    (destination,) = _settings(tmp_path, f'url = "http://one.example:8000"\ntoken_file = "{path}"').destination
    with pytest.raises(ConfigurationError, match=told):
        destination.token({})


def test_a_branch_has_a_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="branch"):
        _settings(tmp_path, 'url = "http://one.example:8000"\nbranch = ""')


@pytest.mark.rules("C9")
@pytest.mark.parametrize(
    ("value", "root"),
    [("", Path(".infrahub-sync-cache")), ("~/runs", Path.home() / "runs"), ("$HOME/runs", Path.home() / "runs")],
)
def test_the_root_of_artifacts_is_what_the_variable_means(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, root: Path
) -> None:
    monkeypatch.setenv("INFRAHUB_SYNC_CACHE_DIR", value)
    assert _settings(tmp_path).cache_dir == root


@pytest.mark.rules("C9")
def test_a_root_of_artifacts_that_leads_upwards_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("INFRAHUB_SYNC_CACHE_DIR", "runs/../elsewhere")
    with pytest.raises(ConfigurationError, match="INFRAHUB_SYNC_CACHE_DIR"):
        _settings(tmp_path)


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("variable", "told"),
    [
        ("APPLY_LEDGER_DNS", "APPLY_LEDGER_DNS (did you mean APPLY_LEDGER_DSN?)"),
        ("APPLY_LEDGER_WRITER__LEASE_TLL", "did you mean APPLY_LEDGER_WRITER__LEASE_TTL?"),
        ("APPLY_LEDGER_CACHE_DIR", "did you mean INFRAHUB_SYNC_CACHE_DIR?"),
        ("apply_ledger_frobnicate", "apply_ledger_frobnicate"),
    ],
)
def test_g11_a_variable_that_nobody_reads_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, told: str
) -> None:
    monkeypatch.setenv(variable, "canary-value")
    with pytest.raises(ConfigurationError) as caught:
        _settings(tmp_path)
    assert told in caught.value.found
    assert "canary-value" not in str(caught.value)


def test_known_variables_and_empty_ones_are_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APPLY_LEDGER_FROBNICATE", "")
    monkeypatch.setenv("APPLY_LEDGER_CONFIG", str(tmp_path / "apply-ledger.toml"))
    monkeypatch.setenv("APPLY_LEDGER_WRITER__LEASE_TTL", "50")
    monkeypatch.setenv("apply_ledger_writer", '{"margin": 4}')
    writer = _settings(tmp_path).writer
    assert (writer.lease_ttl, writer.margin) == (50, 4)


@pytest.mark.rules("G11")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('admin_dns = "canary-value"', "admin_dns (did you mean admin_dsn?): unknown key"),
        (
            '[[destination]]\nurl = "http://a"\nbrnch = "canary-value"',
            "destination.0.brnch (did you mean branch?)",
        ),
        ('[writer]\nlease_tll = "canary-value"', "writer.lease_tll (did you mean lease_ttl?): unknown key"),
        ('[kafka]\nfrobnicate = "canary-value"', "kafka.frobnicate: unknown key"),
        ('[elsewhere]\nkey = "canary-value"', "elsewhere: unknown key"),
    ],
)
def test_g11_an_unknown_key_of_the_file_is_refused_with_what_may_have_been_meant(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "apply-ledger.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        load_settings(config=path)
    assert told in caught.value.found
    assert "canary-value" not in str(caught.value)
