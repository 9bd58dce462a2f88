"""The settings of Kafka: what belongs together, and what is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger.cli.known_secrets import refuse_secrets
from ledger.cli.settings import Settings, load_settings
from ledger.errors import ConfigurationError, SecretInWordsError

PASSWORD = "canary-5a7f-broker-password"


def _settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **variables: str) -> Settings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(f"APPLY_LEDGER_KAFKA__{name}", value)
    return load_settings(config=None)


def test_nothing_goes_through_kafka_unless_brokers_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not _settings(monkeypatch, tmp_path).kafka.is_configured
    with pytest.raises(ConfigurationError, match="APPLY_LEDGER_KAFKA__BROKERS"):
        _settings(monkeypatch, tmp_path).kafka.publish_settings()


def test_both_ends_speak_of_the_same_topic_to_the_same_brokers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kafka = _settings(
        monkeypatch, tmp_path, BROKERS="a.example:9092, b.example:9093", COMMITS_TOPIC="mine", CLIENT_ID="lab"
    ).kafka
    published, taken = kafka.publish_settings(), kafka.intake_settings()
    assert published.brokers == taken.brokers == "a.example:9092, b.example:9093"
    assert published.topic == taken.topic == "mine"
    assert (published.client_id, taken.client_id) == ("lab-commit", "lab-intake")
    assert published.security.client_options() == {"security_protocol": "PLAINTEXT"}


@pytest.mark.rules("G12")
@pytest.mark.parametrize("place", ["environment", "file"])
def test_g12_a_password_reaches_the_client_and_nobody_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: str
) -> None:
    path = tmp_path / "password"
    path.write_text(f"{PASSWORD}\n", encoding="utf-8")
    given = {"PASSWORD": PASSWORD} if place == "environment" else {"PASSWORD_FILE": str(path)}
    settings = _settings(
        monkeypatch, tmp_path, BROKERS="a:1", SECURITY_PROTOCOL="SASL_PLAINTEXT", USERNAME="ledger", **given
    )
    published = settings.kafka.publish_settings()
    assert published.security.client_options()["sasl_plain_password"] == PASSWORD
    for shown in (repr(settings), str(settings.kafka), published.model_dump_json(), repr(published.security)):
        assert PASSWORD not in shown
    with pytest.raises(SecretInWordsError):
        refuse_secrets(settings, reason=f"because of {PASSWORD}!")


@pytest.mark.rules("G11", "G12")
@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"SECURITY_PROTOCOL": "SASL_SSL", "USERNAME": "ledger"}, "needs a username and a password"),
        ({"USERNAME": "ledger", "PASSWORD": PASSWORD}, "of no use with PLAINTEXT"),
        ({"CA_FILE": "/ca.pem"}, "of no use with PLAINTEXT"),
        ({"SECURITY_PROTOCOL": "SSL", "KEY_FILE": "/key.pem"}, "cert_file that it belongs to"),
        ({"SECURITY_PROTOCOL": "SSL", "CA_FILE": "/no/such.pem"}, "FileNotFoundError"),
    ],
)
def test_g11_what_does_not_belong_together_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], told: str
) -> None:
    settings = _settings(monkeypatch, tmp_path, BROKERS="a:1", **variables)
    with pytest.raises(ConfigurationError, match=told) as refused:
        settings.kafka.publish_settings().security.client_options()
    assert PASSWORD not in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"BROKERS": "no port"}, "brokers"),
        ({"BROKERS": "a:1", "PASSWORD": "x", "PASSWORD_FILE": "/p"}, "not both"),
        ({"BROKER": "a:1"}, "APPLY_LEDGER_KAFKA__BROKERS"),
        ({"BROKERS": "a:1", "SECURITY_PROTOCOL": "TLS"}, "security_protocol"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        _settings(monkeypatch, tmp_path, **variables)
