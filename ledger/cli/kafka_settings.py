"""The settings under ``kafka``: whether a broker is used, and how to connect to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from ledger.broker import TOPIC_NAME, BrokerSecurity, SaslMechanism, SecurityProtocol
from ledger.errors import ConfigurationError

if TYPE_CHECKING:
    from consumers.intake.settings import IntakeSettings
    from consumers.relay.settings import RelaySettings
    from producers.publish import PublishSettings


class KafkaSettings(BaseModel):
    """Without ``brokers`` nothing travels through Kafka. Times are seconds.

    Attributes:
        brokers: ``host:port`` pairs, separated by commas.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN.
        username: of the SASL account.
        password: of the SASL account; ``password_file`` names a file that holds it.
        password_file: see there.
        ca_file: authorities that brokers' certificates are checked against; by default the system's.
        cert_file: our own certificate, where brokers ask for one.
        key_file: its key, where that is in a file of its own.
        commits_topic: where plan commits are published and taken from.
        events_topic: where the relay puts every event of the ledger.
        client_id: how the brokers' logs name us; each part of the program adds its own name.
        group: of the intakes that share the topic of commits.
        request_timeout: of one request to a broker.
        publish_within: how long the publication of one commit may take altogether.
        taken_within: how long ``apply`` waits for an intake to take its commit.
        session_timeout: how long a silent intake keeps its partitions.
        stuck_after: an intake without a finished poll for so long ends its process.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    brokers: str | None = Field(default=None, pattern=r"^[^\s,:]+:\d+(\s*,\s*[^\s,:]+:\d+)*$")
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism = "SCRAM-SHA-512"
    username: str | None = None
    password: SecretStr | None = None
    password_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    commits_topic: str = Field(default="plan-commits", pattern=TOPIC_NAME)
    events_topic: str = Field(default="ledger-events", pattern=TOPIC_NAME)
    client_id: str = Field(default="apply-ledger", min_length=1)
    group: str = Field(default="apply-ledger-intake", min_length=1)
    request_timeout: float = Field(default=10.0, gt=0)
    publish_within: float = Field(default=30.0, gt=0)
    taken_within: float = Field(default=120.0, gt=0)
    session_timeout: float = Field(default=10.0, gt=0)
    stuck_after: float = Field(default=60.0, gt=0)

    @model_validator(mode="after")
    def _one_password(self) -> Self:
        if self.password and self.password_file:
            raise ValueError("give password or password_file, not both")
        return self

    @property
    def is_configured(self) -> bool:
        """Whether commits are published instead of being written into the inbox."""
        return self.brokers is not None

    def require_brokers(self) -> str:
        """The brokers' addresses.

        Raises:
            ConfigurationError: none are configured.
        """
        if self.brokers is None:
            raise ConfigurationError(
                checked="the brokers of Kafka",
                expected="at least one address",
                found="none",
                next_action="set APPLY_LEDGER_KAFKA__BROKERS to host:port, or `brokers` in the table [kafka]",
            )
        return self.brokers

    def known_password(self) -> SecretStr | None:
        """The password, from its file where one is named.

        Raises:
            ConfigurationError: the file cannot be read or is empty.
        """
        if self.password_file is None:
            return self.password
        from ledger.cli.secret_files import secret_file

        password = secret_file("kafka.password_file", self.password_file)
        if not password:
            raise ConfigurationError(
                checked="the file that kafka.password_file names",
                expected="the password of the SASL account",
                found=f"{self.password_file} is empty",
                next_action="write the password into it",
            )
        return SecretStr(password)

    def security(self) -> BrokerSecurity:
        """Who we are to the brokers.

        Raises:
            ConfigurationError: what is given does not belong together, or the password's file cannot be read.
        """
        try:
            return BrokerSecurity(
                protocol=self.security_protocol,
                sasl_mechanism=self.sasl_mechanism,
                username=self.username,
                password=self.known_password(),
                ca_file=self.ca_file,
                cert_file=self.cert_file,
                key_file=self.key_file,
            )
        except ValidationError as exc:
            raise ConfigurationError(
                checked="the settings under kafka",
                expected="a protocol with what it takes and nothing else",
                found="; ".join(error["msg"] for error in exc.errors(include_input=False)),
                next_action="docs/reference.md lists what belongs together",
            ) from None  # the cause would show the password

    def publish_settings(self) -> PublishSettings:
        """For publishing commits."""
        from producers.publish import PublishSettings

        return PublishSettings(
            brokers=self.require_brokers(),
            security=self.security(),
            topic=self.commits_topic,
            client_id=f"{self.client_id}-commit",
            request_timeout=self.request_timeout,
            publish_within=self.publish_within,
        )

    def intake_settings(self) -> IntakeSettings:
        """For taking commits."""
        from consumers.intake.settings import IntakeSettings

        return IntakeSettings(
            brokers=self.require_brokers(),
            security=self.security(),
            topic=self.commits_topic,
            group=self.group,
            client_id=f"{self.client_id}-intake",
            request_timeout=self.request_timeout,
            session_timeout=self.session_timeout,
            heartbeat_interval=self.session_timeout / 3,
            stuck_after=self.stuck_after,
        )

    def relay_settings(self) -> RelaySettings:
        """For relaying events, and for reading them."""
        from consumers.relay.settings import RelaySettings

        return RelaySettings(
            brokers=self.require_brokers(),
            security=self.security(),
            topic=self.events_topic,
            client_id=f"{self.client_id}-relay",
            request_timeout=self.request_timeout,
        )
