"""A broker that asks for a password: with the right one everything works, with a wrong one the reason is told (G12)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from consumers.intake.errors import BrokerUnavailableError
from consumers.intake.taking import MessageTaker
from consumers.relay.settings import RelaySettings
from consumers.relay.topic_reader import read_topic
from consumers.topics import TopicSettings, check_topics, create_topics
from ledger.audit.topic import TopicAudit
from ledger.broker import BrokerSecurity
from ledger.store.ledger import Ledger
from producers.publish import BrokerNotReachedError, CommitPublisher, PublishSettings
from tests.integration.kafka.test_relay import relay_everything
from tests.support.commit_topic import CommitTopic
from tests.support.kafka_broker import KafkaCluster, broker_jars
from tests.support.store import BINDING, make_commit

pytestmark = [pytest.mark.integration, pytest.mark.broker, pytest.mark.rules("G12")]

PASSWORD = "canary-77d1-scram-password"
SECURITY = BrokerSecurity(protocol="SASL_PLAINTEXT", username="ledger", password=SecretStr(PASSWORD))
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
WRONG = SECURITY.model_copy(update={"password": SecretStr("canary-0000-another")})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key of the broker, and its certificate as the authority that signed it."""
    found = tmp_path_factory.mktemp("kafka")
    keys = ["-alias", "broker", "-keystore", str(found / "broker.p12"), "-storepass", "changeit"]
    names = ["-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1", "-ext", "BC=ca:true"]
    made = ["-genkeypair", "-keyalg", "RSA", "-storetype", "PKCS12", "-validity", "2"]
    subprocess.run(["keytool", *made, *keys, *names], check=True, capture_output=True)
    subprocess.run(
        ["keytool", "-exportcert", "-rfc", *keys, "-file", str(found / "ca.pem")], check=True, capture_output=True
    )
    return found


@pytest.fixture(scope="module")
def guarded(folder: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(
        broker_jars(),
        folder,
        listeners={"PLAINTEXT": "PLAINTEXT", "GUARDED": "SASL_PLAINTEXT", "TLS": "SASL_SSL"},
        scram={"ledger": PASSWORD},
        properties={
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.guarded.scram-sha-512.sasl.jaas.config": _LOGIN,
            "listener.name.tls.scram-sha-512.sasl.jaas.config": _LOGIN,
            "listener.name.tls.ssl.keystore.location": str(folder / "broker.p12"),
            "listener.name.tls.ssl.keystore.type": "PKCS12",
            "listener.name.tls.ssl.keystore.password": "changeit",
            "listener.name.tls.ssl.key.password": "changeit",
        },
    ) as running:
        yield running


def topics(guarded: KafkaCluster, security: BrokerSecurity) -> TopicSettings:
    return TopicSettings(
        brokers=guarded.bootstrap("GUARDED"),
        security=security,
        commits_topic="commits",
        events_topic="events",
        partitions=1,
        call_within=5.0,
    )


async def test_g12_with_the_right_password_commits_come_in_and_events_go_out(
    guarded: KafkaCluster, inbox: Ledger
) -> None:
    brokers = guarded.bootstrap("GUARDED")
    await create_topics(topics(guarded, SECURITY))
    async with CommitPublisher(PublishSettings(brokers=brokers, security=SECURITY, topic="commits")) as publisher:
        await publisher.publish(make_commit())
    # the test's own look at offsets goes over the open listener, the intake over the guarded one
    topic = CommitTopic(guarded.bootstrap(), "commits")
    await topic.read_to_the_end(MessageTaker(inbox, [BINDING]).take, brokers=brokers, security=SECURITY)
    relay = RelaySettings(brokers=brokers, security=SECURITY, topic="events", send_within=10.0, poll_interval=0.05)
    await relay_everything(relay, inbox)
    audit = TopicAudit()
    await read_topic(relay, audit.feed)
    assert (audit.holds, audit.messages) == (True, 1)


@pytest.mark.rules("G11")
async def test_g11_a_wrong_password_is_told_as_such_and_never_shown(guarded: KafkaCluster) -> None:
    settings = PublishSettings(brokers=guarded.bootstrap("GUARDED"), security=WRONG, publish_within=10.0)
    async with CommitPublisher(settings) as publisher:
        with pytest.raises(BrokerNotReachedError, match="uthentication failed") as refused:
            await publisher.publish(make_commit())
    assert "canary" not in str(refused.value)
    with pytest.raises(BrokerUnavailableError, match="uthentication failed"):
        await check_topics(topics(guarded, WRONG))


@pytest.mark.rules("G11")
async def test_g12_a_broker_is_believed_by_its_certificate_alone(guarded: KafkaCluster, folder: Path) -> None:
    trusting = BrokerSecurity.model_validate(
        {**SECURITY.model_dump(), "protocol": "SASL_SSL", "ca_file": folder / "ca.pem"}
    )
    settings = PublishSettings(brokers=guarded.bootstrap("TLS"), security=trusting, topic="encrypted")
    await create_topics(topics(guarded, SECURITY).model_copy(update={"commits_topic": "encrypted"}))
    async with CommitPublisher(settings) as publisher:
        await publisher.publish(make_commit())

    strange = settings.model_copy(update={"security": trusting.model_copy(update={"ca_file": None})})
    async with CommitPublisher(strange) as publisher:
        with pytest.raises(BrokerNotReachedError, match="CERTIFICATE_VERIFY_FAILED"):
            await publisher.publish(make_commit())
